import type { Timers } from "./timers.ts";

/** How long a terminal lives with nobody attached who may write; `null` is for ever. */
export class Grace {
  readonly #timers: Timers;
  readonly #onOver: () => void;
  #seconds: number | null;
  #cancel: (() => void) | undefined;

  constructor(options: { seconds: number | null; timers: Timers; onOver: () => void }) {
    this.#seconds = options.seconds;
    this.#timers = options.timers;
    this.#onOver = options.onOver;
  }

  get seconds(): number | null {
    return this.#seconds;
  }

  /** Stands still until the next `count`, which begins anew. */
  change(seconds: number | null): void {
    this.stop();
    this.#seconds = seconds;
  }

  /** Goes on, if it is counting already. */
  count(): void {
    if (this.#seconds !== null) this.#cancel ??= this.#timers.after(this.#seconds * 1000, this.#onOver);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
