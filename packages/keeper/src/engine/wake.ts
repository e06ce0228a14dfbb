/** Lets any number of waiters sleep until something changes. Costs nothing while nobody waits. */
export class Wake {
  readonly #waiters = new Set<() => void>();

  /** Resolves at the next `ring`, after `timeoutMs`, or when the signal aborts, whichever is first, and says which. */
  wait(options: { timeoutMs: number; signal: AbortSignal }): Promise<"rung" | "late" | "aborted"> {
    const { timeoutMs, signal } = options;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve("aborted");
      const done = (because: "rung" | "late" | "aborted") => {
        this.#waiters.delete(rung);
        clearTimeout(timer);
        signal.removeEventListener("abort", aborted);
        resolve(because);
      };
      const rung = () => done("rung");
      const aborted = () => done("aborted");
      const timer = setTimeout(() => done("late"), timeoutMs);
      this.#waiters.add(rung);
      signal.addEventListener("abort", aborted);
    });
  }

  ring(): void {
    if (this.#waiters.size === 0) return;
    for (const waiter of [...this.#waiters]) waiter();
  }
}
