import type { Timers } from "./timers.ts";

/**
 * Fifty terminals running `yes` would leave the keeper no processor: its own work is little, but each read of a busy
 * terminal waits in the kernel for a worker that fifty always-ready programs keep from running. So a terminal that
 * floods needs a turn, one has it at a time, and there is a breath between two; the others wait in their `write`.
 * Measured on 2 loaded cores with 50 floods: an HTTP call in 0.5 ms at the median and 5 at the 90th percentile, where
 * it was 14 and 75 without the breath; all floods together get 7 MB/s. A terminal that merely talks is never held, and
 * neither is the only one that floods: its reads wait for nobody, and what it writes is a build's log, or a `cat`.
 */
const TURN_BYTES = 64 * 1024;
const BREATH_MS = 10;
// A terminal that stays under TURN_BYTES in each of these is no flood.
const WINDOW_MS = 50;
// A turn that is not used for so many breaths (the flood is over, or a slow viewer holds it) goes to the next.
const UNUSED_BREATHS = 5;

export interface Flow {
  pause(): void;
  resume(): void;
}

/** One terminal's place among the others. */
export interface Seat {
  /** To be called with the size of everything the terminal puts out. */
  took(bytes: number): void;
  /** Ends its part; may be called twice. */
  leave(): void;
}

type SeatState = { readonly flow: Flow; bytes: number; windowStart: number };

export class Turns {
  readonly #timers: Timers;
  readonly #waiting = new Set<SeatState>();
  #current: SeatState | undefined;
  #unusedBreaths = 0;
  #cancelBreath: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  join(flow: Flow): Seat {
    const seat: SeatState = { flow, bytes: 0, windowStart: 0 };
    return { took: (bytes) => this.#took(seat, bytes), leave: () => this.#leave(seat) };
  }

  #took(seat: SeatState, bytes: number): void {
    // What still comes from a terminal just held was already on its way.
    if (this.#waiting.has(seat)) return;
    const now = this.#timers.now();
    if (seat === this.#current) this.#unusedBreaths = 0;
    else if (now - seat.windowStart >= WINDOW_MS) Object.assign(seat, { windowStart: now, bytes: 0 });
    seat.bytes += bytes;
    if (seat.bytes < TURN_BYTES) return;
    if (this.#isAlone(seat, now)) {
      this.#current = Object.assign(seat, { windowStart: now, bytes: 0 });
    } else this.#wait(seat);
  }

  /** Nobody waits, and whoever had the last turn does not flood any more. */
  #isAlone(seat: SeatState, now: number): boolean {
    const other = this.#current === seat ? undefined : this.#current;
    return this.#waiting.size === 0 && (other === undefined || now - other.windowStart >= WINDOW_MS);
  }

  #wait(seat: SeatState): void {
    if (seat === this.#current) this.#current = undefined;
    this.#waiting.add(seat);
    seat.flow.pause();
    this.#breathe();
  }

  #breathe(): void {
    this.#cancelBreath ??= this.#timers.after(BREATH_MS, () => {
      this.#cancelBreath = undefined;
      this.#unusedBreaths++;
      if (this.#current === undefined || this.#unusedBreaths > UNUSED_BREATHS) this.#callNext();
      if (this.#waiting.size > 0) this.#breathe();
    });
  }

  #callNext(): void {
    const [next] = this.#waiting;
    this.#current = next;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#unusedBreaths = 0;
    Object.assign(next, { windowStart: this.#timers.now(), bytes: 0 });
    next.flow.resume();
  }

  #leave(seat: SeatState): void {
    if (seat === this.#current) this.#current = undefined;
    this.#waiting.delete(seat);
    if (this.#waiting.size > 0) return;
    this.#cancelBreath?.();
    this.#cancelBreath = undefined;
  }
}
