import type { Rng } from "./rng.ts";
import type { Actor, Entry, Scheduler } from "./scheduler.ts";

/** What becomes of one request on its way and back. Without a delay it is lost. */
export interface Fate {
  readonly request: { readonly afterMs: number } | "lost";
  readonly reply: { readonly afterMs: number } | "lost";
  /** The same request arrives again, so much later. */
  readonly again?: { readonly afterMs: number };
}

export interface Call<T> {
  readonly actor: Actor;
  readonly op: string;
  readonly fate: Fate;
  /** Happens when the request arrives. What it throws is the answer. */
  readonly apply: () => T;
  /** Who it is meant for does not listen before; never is infinity. */
  readonly heardFrom?: () => number;
  readonly signal?: AbortSignal;
  /** It may arrive after its sender gave up or died. Without this it happens by then, or never. */
  readonly lingers: boolean;
  /** Where the caller gives no signal, the line itself gives up. */
  readonly timeout?: { readonly ms: number; readonly error: () => Error };
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

/** Carries every call from a server to the world and back, through the scheduler. */
export class Wire {
  readonly #scheduler: Scheduler;
  readonly #rng: Rng;

  constructor(options: { scheduler: Scheduler; rng: Rng }) {
    this.#scheduler = options.scheduler;
    this.#rng = options.rng;
  }

  send<T>(call: Call<T>): Promise<T> {
    const { actor, op, fate, signal, timeout } = call;
    const now = this.#scheduler.now;
    return new Promise<T>((resolve, reject) => {
      let timer: Entry | undefined;
      let request: Entry | undefined;
      const settle = (outcome: Outcome<T>) => {
        if (timer !== undefined) timer.cancelled = true;
        signal?.removeEventListener("abort", aborted);
        if (request !== undefined && !call.lingers) request.cancelled = true;
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value);
      };
      const aborted = () => settle({ error: signal?.reason });
      if (signal?.aborted) return aborted();
      signal?.addEventListener("abort", aborted);
      if (timeout !== undefined) {
        const run = () => settle({ error: timeout.error() });
        timer = this.#scheduler.park({ actor, op: `${op} timed out`, due: now + timeout.ms, run });
      }
      if (fate.request === "lost") return;
      request = this.#deliver(call, now + fate.request.afterMs, settle);
      if (fate.again !== undefined)
        this.#deliver(call, now + fate.request.afterMs + fate.again.afterMs, () => {});
    });
  }

  /** An ordinary way there and back: mostly at once, so that the order is the scheduler's choice, sometimes slow. */
  plainFate(): Fate {
    const afterMs = () => (this.#rng.chance(0.7) ? 0 : this.#rng.between(1, 40));
    return { request: { afterMs: afterMs() }, reply: { afterMs: afterMs() } };
  }

  #deliver<T>(call: Call<T>, due: number, settle: (outcome: Outcome<T>) => void): Entry {
    const { actor, op, fate, apply, lingers, heardFrom } = call;
    const { epoch } = actor;
    const run = () => {
      const heard = heardFrom?.() ?? 0;
      if (heard > this.#scheduler.now) {
        if (heard !== Number.POSITIVE_INFINITY)
          this.#scheduler.park({ op: `${op} is heard`, due: heard, run });
        return;
      }
      const outcome = outcomeOf(apply);
      if (actor.epoch !== epoch || fate.reply === "lost") return;
      const { afterMs } = fate.reply;
      const isHeld = actor.heldUntil > this.#scheduler.now;
      if (afterMs === 0 && !isHeld) return settle(outcome);
      const due = this.#scheduler.now + afterMs;
      this.#scheduler.park({ actor, op: `${op} answered`, due, run: () => settle(outcome) });
    };
    return this.#scheduler.park({ actor, op, due, run, sent: lingers ? "lingers" : "briefly" });
  }
}

function outcomeOf<T>(apply: () => T): Outcome<T> {
  try {
    return { value: apply() };
  } catch (error) {
    return { error };
  }
}
