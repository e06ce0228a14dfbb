/** A line of what the daemon says while it pulls. */
export interface PullLine {
  readonly status?: string;
  /** The layer that it is about. */
  readonly id?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
  readonly error?: string;
}

/** How far a pull is. Sizes are of the layers that it has begun with; the others' are not known before. */
export interface PullProgress {
  readonly layers: number;
  readonly layersDone: number;
  readonly receivedBytes: number;
  readonly totalBytes: number;
}

interface Layer {
  received: number;
  total: number;
  isDone: boolean;
}

/** Adds up what is said layer by layer. */
export class PullTally {
  readonly #layers = new Map<string, Layer>();

  add({ status = "", id, progressDetail }: PullLine): void {
    // "Pulling from library/debian" has the tag as its id.
    if (id === undefined || status.startsWith("Pulling from")) return;
    const layer = this.#layers.get(id) ?? { received: 0, total: 0, isDone: false };
    this.#layers.set(id, layer);
    const { current, total } = progressDetail ?? {};
    if (status === "Downloading" && current !== undefined) {
      layer.received = current;
      layer.total = Math.max(total ?? 0, current);
    }
    if (/^(Download complete|Verifying Checksum|Extracting)/.test(status)) layer.received = layer.total;
    if (/^(Pull complete|Already exists)/.test(status)) layer.isDone = true;
  }

  get progress(): PullProgress {
    const layers = [...this.#layers.values()];
    const sum = (of: (layer: Layer) => number) => layers.reduce((all, layer) => all + of(layer), 0);
    return {
      layers: layers.length,
      layersDone: layers.filter(({ isDone }) => isDone).length,
      receivedBytes: sum(({ received }) => received),
      totalBytes: sum(({ total }) => total),
    };
  }
}
