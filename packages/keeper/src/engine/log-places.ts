/** A frame that begins at byte `at` of its segment, with the log's byte `offset`. */
interface Place {
  readonly offset: number;
  readonly at: number;
}

// So much of a segment is looked through at most: less than what one read takes.
const EVERY_BYTES = 128 * 1024;
// Eight whole logs: a few KiB of numbers. What is forgotten is found again by looking through its segment.
const MAX_SEGMENTS = 64;

/**
 * Where frames begin in the segments that were written or read last, so that an offset is found without looking
 * through its segment from the beginning. Only a hint: the work can change a segment at any time, so whoever follows
 * one checks that the frame is there.
 */
class LogPlaces {
  readonly #segments = new Map<string, Place[]>();

  /** Says where a frame begins. A segment's places come in their order; most of them are not worth keeping. */
  remember(path: string, place: Place): void {
    if (place.at < EVERY_BYTES) return;
    const places = this.#segments.get(path) ?? this.#add(path);
    if (place.at - (places.at(-1)?.at ?? 0) >= EVERY_BYTES) places.push(place);
  }

  /** The last known place at or before the offset, if there is one. */
  find(path: string, offset: number): Place | undefined {
    return this.#segments.get(path)?.findLast((place) => place.offset <= offset);
  }

  /** The segment is gone, or begins anew. */
  forget(path: string): void {
    this.#segments.delete(path);
  }

  #add(path: string): Place[] {
    const places: Place[] = [];
    this.#segments.set(path, places);
    const [oldest] = this.#segments.keys();
    if (this.#segments.size > MAX_SEGMENTS && oldest !== undefined) this.#segments.delete(oldest);
    return places;
  }
}

/** One for all logs of a keeper: whoever reads a log need not know who wrote it. */
export const logPlaces = new LogPlaces();
