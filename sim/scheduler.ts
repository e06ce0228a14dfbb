import { drainMicrotasks } from "bun:jsc";
import { DueHeap } from "./due-heap.ts";
import type { Rng } from "./rng.ts";
import type { Trace } from "./trace.ts";

/** Something that can be killed or paused as a whole: a server, a client. */
export class Actor {
  readonly name: string;
  /** Grows with each kill: what was parked for an older one is never resolved. */
  epoch = 0;
  /** Paused until then: what is meant for it waits. */
  heldUntil = 0;

  constructor(name: string) {
    this.name = name;
  }
}

/** One thing that may happen next. Without an actor it belongs to the world, and nobody's death stops it. */
export interface Parked {
  readonly op: string;
  readonly due: number;
  readonly actor?: Actor;
  readonly run: () => void;
  /** Already on its way out of the actor: a kill may or may not come too late for it. `lingers`: and it stays on its way. */
  readonly sent?: "briefly" | "lingers";
}

export interface Entry extends Parked {
  readonly id: number;
  readonly epoch: number;
  due: number;
  cancelled: boolean;
}

/**
 * Virtual time and the order of everything. Every call through a port is parked here; one ready entry at a time is
 * picked with the seeded numbers, applied, and followed to its end (all microtasks) before the next. Nothing ready:
 * time jumps. The whole run is synchronous, so no timer and no other work of the process can come between.
 */
export class Scheduler {
  readonly #rng: Rng;
  readonly #trace: Trace;
  readonly #choose: (count: number) => number;
  readonly #later = new DueHeap<Entry>();
  readonly #ready: Entry[] = [];
  #ids = 0;
  now = 0;
  steps = 0;

  /** `choose`: which of so many is next; else the numbers decide. */
  constructor(options: { rng: Rng; trace: Trace; choose?: ((count: number) => number) | undefined }) {
    this.#rng = options.rng;
    this.#trace = options.trace;
    this.#choose = options.choose ?? ((count) => Math.floor(this.#rng.next() * count));
  }

  park(parked: Parked): Entry {
    const entry: Entry = { ...parked, id: ++this.#ids, epoch: parked.actor?.epoch ?? 0, cancelled: false };
    if (entry.due <= this.now) this.#ready.push(entry);
    else this.#later.push(entry);
    return entry;
  }

  /** As SIGKILL: its code never runs again. What it had sent arrives or not, as it happens. */
  kill(actor: Actor): void {
    const sent = this.#entries().filter(
      (entry) => entry.actor === actor && !isOver(entry) && entry.sent !== undefined,
    );
    actor.epoch++;
    actor.heldUntil = 0;
    for (const { op, due, run, sent: how } of sent) {
      if (this.#rng.chance(0.5)) continue;
      this.park({ op: `${op} (sender killed)`, due: how === "lingers" ? due : this.now, run });
    }
  }

  /** As SIGSTOP, or a long collection of garbage: everything that is meant for it comes late. */
  pause(actor: Actor, ms: number): void {
    actor.heldUntil = Math.max(actor.heldUntil, this.now + ms);
  }

  /** Applies one entry. `false` if nothing is left to happen before `until`; then it is that time. */
  step(until: number): boolean {
    const entry = this.#next(until);
    if (entry === undefined) return false;
    this.steps++;
    this.#trace.add(this.now, entry.op);
    entry.run();
    drainMicrotasks();
    return true;
  }

  #next(until: number): Entry | undefined {
    for (;;) {
      this.#promote();
      const entry = this.#takeReady();
      if (entry === undefined) {
        const due = this.#later.peek()?.due;
        if (due === undefined || due > until) {
          this.now = Math.max(this.now, until);
          return undefined;
        }
        this.now = due;
        continue;
      }
      if (isOver(entry)) continue;
      const heldUntil = entry.actor?.heldUntil ?? 0;
      if (heldUntil <= this.now || entry.sent !== undefined) return entry;
      entry.due = heldUntil;
      this.#later.push(entry);
    }
  }

  #takeReady(): Entry | undefined {
    if (this.#ready.length === 0) return undefined;
    const index = this.#ready.length === 1 ? 0 : this.#choose(this.#ready.length);
    const entry = this.#ready[index];
    const last = this.#ready.pop();
    if (last !== undefined && last !== entry) this.#ready[index] = last;
    return entry;
  }

  #promote(): void {
    for (
      let next = this.#later.peek();
      next !== undefined && next.due <= this.now;
      next = this.#later.peek()
    ) {
      this.#later.pop();
      if (!isOver(next)) this.#ready.push(next);
    }
  }

  #entries(): Entry[] {
    return [...this.#ready, ...this.#later.all()].sort((a, b) => a.id - b.id);
  }
}

function isOver({ cancelled, actor, epoch }: Entry): boolean {
  return cancelled || (actor !== undefined && actor.epoch !== epoch);
}
