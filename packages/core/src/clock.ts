/** Time, injected. For measuring, not for dates: those come from the store, whose clock may be set. */
export interface Clock {
  /** Milliseconds that only ever grow. */
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
