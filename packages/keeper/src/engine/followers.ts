/** A reader's place in a log that is still written to. */
export interface Follower {
  /** It has taken everything before this offset. */
  moved(offset: number): void;
  /** May be called twice. */
  leave(): void;
}

interface Place {
  offset: number;
  movedAt: number;
}

// A reader that takes nothing for this long is not slow, but stuck: a laptop's lid, a stopped client. The program goes
// on then, and the reader is told later what it missed.
const PATIENCE_MS = 30_000;

/**
 * Lets those who follow a log pace the program that writes it: as long as the ring can hold what they are behind, not
 * at all; then the program waits for the slowest, as it would for a pipe, but only for one that still moves.
 */
export class Followers {
  readonly #places = new Set<Place>();
  readonly #maxLagBytes: number;
  readonly #patienceMs: number;
  #wake = Promise.withResolvers<void>();

  constructor(options: { maxLagBytes: number; patienceMs?: number }) {
    this.#maxLagBytes = options.maxLagBytes;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
  }

  join(offset: number): Follower {
    const place: Place = { offset, movedAt: performance.now() };
    this.#places.add(place);
    return {
      moved: (to) => {
        place.offset = to;
        place.movedAt = performance.now();
        this.#ring();
      },
      leave: () => {
        this.#places.delete(place);
        this.#ring();
      },
    };
  }

  /** Resolves when the log may grow beyond `nextOffset`; `undefined` if it may at once, which is nearly always. */
  room(nextOffset: number): Promise<void> | undefined {
    return this.#waitMs(nextOffset) > 0 ? this.#waitForRoom(nextOffset) : undefined;
  }

  async #waitForRoom(nextOffset: number): Promise<void> {
    for (let ms = this.#waitMs(nextOffset); ms > 0; ms = this.#waitMs(nextOffset)) {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      await Promise.race([this.#wake.promise, late]);
      clearTimeout(timer);
    }
  }

  /** How long the most patient wait for somebody who is too far behind may still take. */
  #waitMs(nextOffset: number): number {
    let ms = 0;
    for (const { offset, movedAt } of this.#places) {
      if (nextOffset - offset <= this.#maxLagBytes) continue;
      ms = Math.max(ms, movedAt + this.#patienceMs - performance.now());
    }
    return ms;
  }

  #ring(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}
