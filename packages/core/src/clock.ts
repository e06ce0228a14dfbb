/** Time, injected: no decision reads the machine's own clock. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
