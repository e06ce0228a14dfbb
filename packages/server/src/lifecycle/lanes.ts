/** So many calls of one backend at a time; the others wait their turn. */
export class Lanes {
  readonly #limit: number;
  readonly #busy = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const busy = this.#busy.get(name) ?? 0;
    if (busy < this.#limit) this.#busy.set(name, busy + 1);
    else await new Promise<void>((resolve) => this.#queue(name).push(resolve));
    try {
      return await work();
    } finally {
      this.#leave(name);
    }
  }

  /** The place goes to the next in line, or is free. */
  #leave(name: string): void {
    const next = this.#queue(name).shift();
    if (next !== undefined) next();
    else this.#busy.set(name, (this.#busy.get(name) ?? 1) - 1);
  }

  #queue(name: string): (() => void)[] {
    const queue = this.#waiting.get(name) ?? [];
    this.#waiting.set(name, queue);
    return queue;
  }
}
