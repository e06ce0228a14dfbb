/** One line on a terminal that says how far something is; nothing where nobody looks. */
export class ProgressLine {
  readonly #what: string;
  readonly #isShown: boolean;
  #hasLine = false;

  constructor(what: string, { quiet }: { quiet: boolean }) {
    this.#what = what;
    this.#isShown = !quiet && process.stderr.isTTY === true;
  }

  show(howFar: string): void {
    if (!this.#isShown) return;
    this.#hasLine = true;
    const line = `${this.#what}: ${howFar}`;
    process.stderr.write(`\r\x1b[K${line.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  /** Leaves no trace. May be called twice. */
  end(): void {
    if (this.#hasLine) process.stderr.write("\r\x1b[K");
    this.#hasLine = false;
  }
}
