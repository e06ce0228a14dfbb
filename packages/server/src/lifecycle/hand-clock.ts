import type { Clock } from "@holdfast/core";

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/** For tests: time stands still until somebody moves it. */
export class HandClock implements Clock {
  /** How far a wall clock is ahead of this one: set it, and the clock was set. */
  wallAheadMs = 1_700_000_000_000;
  readonly #sleepers = new Set<Sleeper>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.wallAheadMs + this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { until: this.#now + ms, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake);
    });
  }

  /** Lets time pass, sleeper by sleeper, each with all the work that it wakes up for. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settled();
    for (let next = this.#next(); next !== undefined && next.until <= until; next = this.#next()) {
      this.#now = Math.max(this.#now, next.until);
      next.wake();
      await settled();
    }
    this.#now = until;
  }

  /** Lets time pass until it is true, or for so long that it never will be. */
  async until(isTrue: () => boolean | Promise<boolean>, { withinMs }: { withinMs: number }): Promise<void> {
    const end = this.#now + withinMs;
    await settled();
    while (!(await isTrue())) {
      const next = this.#next();
      if (next === undefined || next.until > end) throw new Error(`not true within ${withinMs} ms`);
      await this.pass(next.until - this.#now);
    }
  }

  #next(): Sleeper | undefined {
    return [...this.#sleepers].sort((a, b) => a.until - b.until)[0];
  }
}

/** Until everything that can go on without time passing has gone on: no part of it waits for real I/O. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
