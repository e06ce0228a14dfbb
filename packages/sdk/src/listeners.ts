/** Those who want to be told of something. */
export class Listeners<T> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Returns a function that takes it away again, and may be called twice. */
  add(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  tell(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
}
