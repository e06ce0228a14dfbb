/** Opens and shuts; those who come while it is shut wait. Once it has failed, nobody gets through any more. */
export class Gate {
  #way = newWay();

  /** Resolves while it is open, or as soon as it is. */
  opened(): Promise<void> {
    return this.#way.promise;
  }

  open(): void {
    this.#way.resolve();
  }

  shut(): void {
    this.#way = newWay();
  }

  fail(error: unknown): void {
    this.#way.reject(error);
    this.#way = newWay();
    this.#way.reject(error);
  }
}

interface Way {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: unknown) => void;
}

// `Promise.withResolvers` by hand: Node 20 does not have it.
function newWay(): Way {
  const way: Partial<Way> = {};
  way.promise = new Promise<void>((resolve, reject) => Object.assign(way, { resolve, reject }));
  // A failure that nobody waits for is nobody's unhandled rejection.
  way.promise.catch(() => undefined);
  return way as Way;
}
