import type { WatchEvent } from "@holdfast/protocol";
import { Wake } from "../engine/wake.ts";

/** An event with the cursor after it. */
export interface Numbered {
  readonly cursor: string;
  readonly event: WatchEvent;
}

/**
 * The last events of a watch, numbered, so that whoever lost its connection goes on where it was. A cursor names the
 * ring that it is of: a number of another ring, of an earlier keeper, means nothing here.
 */
export class EventRing {
  readonly changed = new Wake();
  readonly #id = crypto.randomUUID().slice(0, 8);
  readonly #most: number;
  #events: WatchEvent[] = [];
  /** The number of the first in `#events`. */
  #first = 1;

  constructor({ most }: { most: number }) {
    this.#most = most;
  }

  push(events: readonly WatchEvent[]): void {
    if (events.length === 0) return;
    for (const event of events) this.#events.push(event);
    // Seldom and many at once: it costs as much as there are left.
    if (this.#events.length > 2 * this.#most) {
      const dropped = this.#events.length - this.#most;
      this.#events = this.#events.slice(dropped);
      this.#first += dropped;
    }
    this.changed.ring();
  }

  /** The number before which everything has happened. */
  get next(): number {
    return this.#first + this.#events.length;
  }

  cursorAt(next: number): string {
    return `${this.#id}:${next}`;
  }

  /** Where a cursor goes on; `undefined` if it is not of this ring. */
  placeOf(cursor: string): number | undefined {
    const [id, number = ""] = cursor.split(":");
    if (id !== this.#id || !/^\d{1,15}$/.test(number)) return undefined;
    return Number(number) <= this.next ? Number(number) : undefined;
  }

  /** Up to `most` events from a number on; `undefined` if the first of them is not kept any more. */
  read(from: number, most: number): Numbered[] | undefined {
    if (from < this.#first) return undefined;
    const at = from - this.#first;
    return this.#events
      .slice(at, at + most)
      .map((event, index) => ({ cursor: this.cursorAt(from + index + 1), event }));
  }
}
