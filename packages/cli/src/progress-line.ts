/** One line on a terminal that says how far something is; nothing where nobody looks. */
export class ProgressLine {
  readonly #what: string;
  readonly #isShown = process.stderr.isTTY === true;
  #hasLine = false;

  constructor(what: string) {
    this.#what = what;
  }

  show(howFar: string): void {
    if (!this.#isShown) return;
    this.#hasLine = true;
    process.stderr.write(`\r\x1b[K${this.#what}: ${howFar}`);
  }

  /** Leaves no trace. May be called twice. */
  end(): void {
    if (this.#hasLine) process.stderr.write("\r\x1b[K");
    this.#hasLine = false;
  }
}
