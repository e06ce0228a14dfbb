import { realTimers, type Timers } from "./timers.ts";

/** Time that stands still until a test moves it. */
export class FakeTimers implements Timers {
  #now = 0;
  readonly #due = new Set<{ at: number; action: () => void }>();

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(ms: number, action: () => void): () => void {
    const entry = { at: this.#now + ms, action };
    this.#due.add(entry);
    return () => this.#due.delete(entry);
  }

  get pending(): number {
    return this.#due.size;
  }

  /** Fires everything that falls due on the way, in order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.#first(until); next !== undefined; next = this.#first(until)) {
      this.#due.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
    }
    this.#now = until;
  }

  /** Time passes while nothing runs, as in a laptop's sleep: what fell due on the way fires once, late. */
  sleep(ms: number): void {
    this.#now += ms;
    this.advance(0);
  }

  #first(until: number): { at: number; action: () => void } | undefined {
    const due = [...this.#due].filter(({ at }) => at <= until);
    return due.sort((a, b) => a.at - b.at)[0];
  }
}

/** What takes more than a second stands still until the test moves it; the rest passes as it does. */
export function fakeSeconds(fake: FakeTimers): Timers {
  const after: Timers["after"] = (ms, action) => (ms <= 1000 ? realTimers : fake).after(ms, action);
  return { now: () => fake.now(), elapsed: () => fake.elapsed(), after };
}
