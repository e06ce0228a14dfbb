/** What the runs have seen so far. Over many seeds everything that can happen must have happened, or the runs are tame. */
export class Coverage {
  readonly #counts = new Map<string, number>();

  sometimes(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  add(counts: Readonly<Record<string, number>>): void {
    for (const [name, count] of Object.entries(counts)) {
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
    }
  }

  /** Those whose name begins so, without that beginning. */
  under(prefix: string): Map<string, number> {
    const found = [...this.#counts].filter(([name]) => name.startsWith(prefix));
    return new Map(found.map(([name, count]) => [name.slice(prefix.length), count]));
  }

  counts(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
