export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** What it makes of the product. */
  readonly why: string;
}

export const mutants: readonly Mutant[] = [];
