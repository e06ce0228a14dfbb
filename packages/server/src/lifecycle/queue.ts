import type { Clock } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Bell } from "./bell.ts";

/** Room may also appear without a write that this server sees. */
const LOOK_EVERY_MS = 1_000;

export interface QueueDeps {
  readonly clock: Clock;
  readonly bell: Bell;
  /** Gives up what nobody has asked for. Whether there was any of that. */
  readonly makeRoom: () => Promise<boolean>;
}

/** Those who wait for room, first come first served: only the first in line asks. */
export class Queue {
  readonly #deps: QueueDeps;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(deps: QueueDeps) {
    this.#deps = deps;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Tries at once; without room, again and again for `ms`, and then gives the last refusal. */
  async run<T>(ms: number, attempt: () => Promise<T>): Promise<T> {
    if (this.#waiting === 0 || ms <= 0) {
      const first = await this.#tried(attempt);
      if ("value" in first) return first.value;
      if (ms <= 0) throw first.refusal;
    }
    const { clock } = this.#deps;
    const until = clock.now() + ms;
    this.#waiting++;
    const before = this.#last;
    const mine = (async () => {
      await Promise.race([before, clock.sleep(ms)]);
      return this.#inFront(until, attempt);
    })();
    this.#last = Promise.allSettled([before, mine]);
    try {
      return await mine;
    } finally {
      this.#waiting--;
    }
  }

  async #inFront<T>(until: number, attempt: () => Promise<T>): Promise<T> {
    const { clock, bell } = this.#deps;
    for (;;) {
      const next = await this.#tried(attempt);
      if ("value" in next) return next.value;
      const left = until - clock.now();
      if (left <= 0) throw next.refusal;
      await bell.wait(undefined, { ms: Math.min(left, LOOK_EVERY_MS), clock });
    }
  }

  async #tried<T>(attempt: () => Promise<T>): Promise<{ value: T } | { refusal: HoldfastError }> {
    const first = await tried(attempt);
    const isFull = "refusal" in first && first.refusal.code === "capacity_exhausted";
    return isFull && (await this.#deps.makeRoom()) ? tried(attempt) : first;
  }
}

async function tried<T>(attempt: () => Promise<T>): Promise<{ value: T } | { refusal: HoldfastError }> {
  try {
    return { value: await attempt() };
  } catch (error) {
    if (
      error instanceof HoldfastError &&
      (error.code === "capacity_exhausted" || error.code === "quota_exceeded")
    )
      return { refusal: error };
    throw error;
  }
}
