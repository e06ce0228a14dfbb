// Often enough to look alive, seldom enough to cost nothing.
const EVERY_MS = 200;

/** A line on stderr that says how far it is, where somebody looks at it; elsewhere nothing. */
export class Progress {
  readonly #what: string;
  readonly #total: number | undefined;
  readonly #quiet: boolean;
  #shownAt = 0;
  #isShown = false;

  constructor(what: string, { total, quiet }: { total: number | undefined; quiet: boolean }) {
    this.#what = what;
    this.#total = total;
    this.#quiet = quiet;
  }

  at(bytes: number): void {
    const now = performance.now();
    if (this.#quiet || !process.stderr.isTTY || now - this.#shownAt < EVERY_MS) return;
    this.#shownAt = now;
    this.#isShown = true;
    const part = this.#total === undefined ? "" : ` of ${size(this.#total)}, ${percent(bytes, this.#total)}`;
    const line = `${this.#what}: ${size(bytes)}${part}`;
    process.stderr.write(`\r\x1b[K${line.slice(-((process.stderr.columns || 80) - 1))}`); // its end says how far
  }

  /** Takes the line away. */
  end(): void {
    if (this.#isShown) process.stderr.write("\r\x1b[K");
  }

  /** The same bytes, counted as they pass, on top of what came before. */
  async *counting(stream: AsyncIterable<Uint8Array>, before = 0): AsyncGenerator<Uint8Array> {
    let bytes = before;
    for await (const piece of stream) {
      yield piece;
      bytes += piece.length;
      this.at(bytes);
    }
  }
}

function percent(bytes: number, total: number): string {
  return total === 0 ? "100 %" : `${Math.floor((bytes / total) * 100)} %`;
}

function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`;
}
