/**
 * When the sandbox was last used, and by what: the moment from which its idle time counts. Whoever sees a use end says
 * so here. Looking at something is not use.
 */
export class UseClock {
  readonly #elapsed: () => number;
  #last: { readonly at: number; readonly what: string };

  /** `elapsed`: milliseconds from a clock that nobody sets. */
  constructor(elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed;
    this.#last = { at: elapsed(), what: "the instance was started" };
  }

  /** `what` is a sentence for people, in the past tense. */
  note(what: string): void {
    this.#last = { at: this.#elapsed(), what };
  }

  get idleForMs(): number {
    return this.#elapsed() - this.#last.at;
  }

  /** What the last use was. */
  get lastUse(): string {
    return this.#last.what;
  }
}
