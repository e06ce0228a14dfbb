export interface Violation {
  /** S1 to S13, L1 to L7, or the name of a check that follows from them. */
  readonly invariant: string;
  readonly what: string;
}

/**
 * Takes down the first invariant that does not hold. It does not throw: it may be told in the middle of the product's
 * code, which would catch what is thrown there.
 */
export class Judge {
  #violation: Violation | undefined;

  get violation(): Violation | undefined {
    return this.#violation;
  }

  demand(holds: boolean, invariant: string, what: () => string): void {
    if (!holds) this.#violation ??= { invariant, what: what() };
  }
}
