import type { Timers } from "./timers.ts";

/**
 * Fifty terminals running `yes` would leave the keeper no processor: not its event loop is the trouble, but fifty
 * programs that are always ready to run. So a terminal that floods needs a turn, and only a few have one at a time;
 * the others are held in their `write` until theirs comes. A terminal that merely talks is never held, and one that
 * floods alone keeps its turn.
 */
const TURNS_AT_A_TIME = 2;
// More than a full-screen program redraws at once; little enough that fifty turns go round in a fraction of a second.
const TURN_BYTES = 64 * 1024;
// A terminal that stays under TURN_BYTES in each of these is no flood.
const WINDOW_MS = 50;

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

type SeatState = { flow: Flow; bytes: number; windowStart: number; active: boolean };

export class Turns {
  readonly #timers: Timers;
  readonly #having = new Set<SeatState>();
  readonly #waiting = new Set<SeatState>();
  #cancelTick: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  join(flow: Flow): Seat {
    const seat: SeatState = { flow, bytes: 0, windowStart: 0, active: false };
    return { took: (bytes) => this.#took(seat, bytes), leave: () => this.#leave(seat) };
  }

  #took(seat: SeatState, bytes: number): void {
    // What still comes from a terminal just held was already on its way.
    if (this.#waiting.has(seat)) return;
    const now = this.#timers.now();
    const hasTurn = this.#having.has(seat);
    if (!hasTurn && now - seat.windowStart >= WINDOW_MS) {
      seat.windowStart = now;
      seat.bytes = 0;
    }
    seat.active = true;
    seat.bytes += bytes;
    if (seat.bytes < TURN_BYTES) return;
    if (hasTurn) this.#endTurn(seat);
    else this.#askForTurn(seat);
  }

  #askForTurn(seat: SeatState): void {
    if (this.#having.size < TURNS_AT_A_TIME) {
      this.#giveTurn(seat);
    } else {
      this.#waiting.add(seat);
      seat.flow.pause();
    }
    this.#watch();
  }

  #endTurn(seat: SeatState): void {
    seat.bytes = 0;
    if (this.#waiting.size === 0) return;
    this.#having.delete(seat);
    this.#waiting.add(seat);
    seat.flow.pause();
    this.#callNext();
  }

  #callNext(): void {
    for (const seat of this.#waiting) {
      if (this.#having.size >= TURNS_AT_A_TIME) return;
      this.#waiting.delete(seat);
      this.#giveTurn(seat);
      seat.flow.resume();
    }
  }

  #giveTurn(seat: SeatState): void {
    seat.bytes = 0;
    seat.active = true;
    this.#having.add(seat);
  }

  /** A turn that nobody uses any more (the flood is over, or a slow viewer holds it) goes to the next. */
  #watch(): void {
    this.#cancelTick ??= this.#timers.after(WINDOW_MS, () => {
      this.#cancelTick = undefined;
      for (const seat of this.#having) {
        if (!seat.active) this.#having.delete(seat);
        seat.active = false;
      }
      this.#callNext();
      if (this.#having.size > 0) this.#watch();
    });
  }

  #leave(seat: SeatState): void {
    this.#having.delete(seat);
    this.#waiting.delete(seat);
    this.#callNext();
    if (this.#having.size === 0) this.#cancelTick?.();
    if (this.#having.size === 0) this.#cancelTick = undefined;
  }
}
