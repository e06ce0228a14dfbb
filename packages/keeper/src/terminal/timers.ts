/** Time, injected, so that no test waits for a grace or a stall. */
export interface Timers {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `action` once after `ms`, unless the returned function is called first; that may be called twice. */
  after(ms: number, action: () => void): () => void;
}

export const realTimers: Timers = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
};
