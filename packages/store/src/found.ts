import type { Holding } from "@holdfast/core";

/** A page of a dashboard, some agents: whoever asks again and again asks for a few. */
const MOST = 1_000;

/**
 * Sandboxes as they were read, for as long as nothing was written. Every call begins with such a look, and reading the
 * rows again is a third of what the server does for a short command.
 */
export class Found {
  readonly #holdings = new Map<string, Holding>();
  #asOf: number | undefined;

  /** `writes`: the driver's count now. */
  get(idOrName: string, writes: number | undefined): Holding | undefined {
    return writes === undefined || writes !== this.#asOf ? undefined : this.#holdings.get(idOrName);
  }

  /** `writes`: the driver's count before the rows were read. */
  keep(idOrName: string, holding: Holding, writes: number | undefined): void {
    if (writes === undefined || writes < (this.#asOf ?? 0)) return;
    if (writes !== this.#asOf || this.#holdings.size >= MOST) this.#holdings.clear();
    this.#asOf = writes;
    this.#holdings.set(idOrName, holding);
  }
}
