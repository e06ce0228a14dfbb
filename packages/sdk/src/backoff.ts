const FIRST_PAUSE_MS = 50;
// A restarting server is back within a second or two: longer pauses would only add to the wait.
const LONGEST_PAUSE_MS = 1000;

/**
 * Growing pauses between attempts, and an end to them. `reset` after a sign of life: the patience is for one outage,
 * not for all outages of a long follow together.
 */
export class Patience {
  readonly #totalMs: number;
  #failingSince: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(totalMs: number) {
    this.#totalMs = totalMs;
  }

  reset(): void {
    this.#failingSince = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** Waits before the next attempt; throws `error` if the outage has lasted too long. */
  async pause(error: unknown, signal?: AbortSignal): Promise<void> {
    const now = Date.now();
    this.#failingSince ??= now;
    const leftMs = this.#totalMs - (now - this.#failingSince);
    if (leftMs <= 0) throw error;
    // Half of it by chance, so that a hundred clients of one server do not come back in step.
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    await sleep(Math.min(pauseMs, leftMs), signal);
  }
}

/** Rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
