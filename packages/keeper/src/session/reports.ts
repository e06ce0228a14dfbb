/**
 * What the shell side tells the driver, one line each: a kind, the number of the command it is about, a value.
 *
 *   E n status   the text has ended              S n pid      a savepoint holds the state after it
 *   X n          the text could not be read      K n          the dump that was asked for is written
 *   T n pid      the savepoint takes over        D n status   the shell that took over has ended
 *   R n          the state that was dumped is read again
 */
export interface Report {
  readonly kind: string;
  readonly n: number;
  readonly value: number;
}

// Longer than any report can be.
const MAX_LINE = 100;

/** Cuts chunks into reports and hands each to whoever expects it. What is no report is dropped. */
export class Reports {
  readonly #expected = new Map<string, (value: number) => void>();
  readonly #hear: (report: Report) => void;
  #rest = "";

  /** `hear` gets every report, before whoever expects it. */
  constructor(hear: (report: Report) => void) {
    this.#hear = hear;
  }

  push(bytes: Uint8Array): void {
    const lines = (this.#rest + Buffer.from(bytes).toString("latin1")).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-MAX_LINE);
    for (const line of lines) {
      const [kind = "", n, value] = line.split(" ");
      this.#hear({ kind, n: Number(n), value: Number(value ?? 0) });
      this.#expected.get(`${kind} ${n}`)?.(Number(value ?? 0));
    }
  }

  /** Calls with the value of a report that is to come, unless it is forgotten before. */
  expect(kind: string, n: number, told: (value: number) => void): void {
    this.#expected.set(`${kind} ${n}`, told);
  }

  forget(kind: string, n: number): void {
    this.#expected.delete(`${kind} ${n}`);
  }

  /** The value of a report, or `undefined` if it does not come in time, or if `unless` ends before. */
  async within(ms: number, kind: string, n: number, unless?: Mortal): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const timer = setTimeout(resolve, ms, undefined);
    const forget = unless?.onEnd(() => resolve(undefined));
    this.expect(kind, n, resolve);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      forget?.();
      this.forget(kind, n);
    }
  }
}

interface Mortal {
  /** Returns what ends the listening. */
  onEnd(hear: () => void): () => void;
}
