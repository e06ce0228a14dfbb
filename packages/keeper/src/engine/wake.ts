/** Lets any number of waiters sleep until something changes. Costs nothing while nobody waits. */
export class Wake {
  readonly #waiters = new Set<() => void>();

  /** Resolves at the next `ring`, after `timeoutMs`, or when the signal aborts, whichever is first. */
  wait(options: { timeoutMs?: number | undefined; signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { timeoutMs, signal } = options;
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      let timer: Timer | undefined;
      const done = () => {
        this.#waiters.delete(done);
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      this.#waiters.add(done);
      signal?.addEventListener("abort", done);
      if (timeoutMs !== undefined) timer = setTimeout(done, timeoutMs);
    });
  }

  ring(): void {
    if (this.#waiters.size === 0) return;
    for (const waiter of [...this.#waiters]) waiter();
  }
}
