/** Time, injected, so that no test waits for a grace or a stall. */
export interface Timers {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds from a clock that nobody sets: only differences mean something. */
  elapsed(): number;
  /** Calls `action` once after `ms`, unless the returned function is called first; that may be called twice. */
  after(ms: number, action: () => void): () => void;
}

export const realTimers: Timers = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
};
