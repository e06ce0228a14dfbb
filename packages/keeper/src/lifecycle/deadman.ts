import type { AdmitRequest, EndCause } from "@holdfast/protocol";
import type { Timers } from "../terminal/timers.ts";
import type { Activity } from "./activity.ts";

// The most that passes at once for us: a laptop's sleep, a paused container or SIGSTOP is no time without a server.
const TICK_MS = 5_000;
// However short the lifetime: a server that is updated and started anew takes minutes, not seconds.
const LEAST_WITHOUT_SERVER_MS = 600_000;

export type Policy = Pick<AdmitRequest, "lifetimeSeconds" | "maxLifetimeSeconds" | "orphanLimitSeconds">;

export interface DeadmanOptions {
  readonly timers: Timers;
  readonly activity: Pick<Activity, "seemsIdle" | "judge">;
  /** The highest that was seen: a lower one is that of a server that was replaced. */
  readonly fence: () => number;
  onEnd(cause: EndCause): void;
}

/**
 * Ends an instance that has no server any more, and one that has reached its greatest age. It counts the time that it
 * really ran. In contact is: a server holds its watch, or has said something just now. Nobody has to say so regularly.
 */
export class Deadman {
  readonly #options: DeadmanOptions;
  /** The fences of the watches that are held now. */
  readonly #watches = new Set<{ readonly fence: number }>();
  #policy: Policy | undefined;
  #ranMs = 0;
  #silentMs = 0;
  #countedAt: number;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: DeadmanOptions) {
    this.#options = options;
    this.#countedAt = options.timers.elapsed();
    this.#wait();
  }

  get policy(): Policy | undefined {
    return this.#policy;
  }

  /** A server that has the instance now, and what it wants. */
  admitted(policy: Policy): void {
    this.heard();
    this.#policy = policy;
    this.#wait();
  }

  /** A request of a server that was not replaced. */
  heard(): void {
    this.#count();
    this.#silentMs = 0;
  }

  /** A server holds a connection; the returned function says that it ended, and may be called twice. */
  watched(): () => void {
    this.heard();
    const watch = { fence: this.#options.fence() };
    this.#watches.add(watch);
    return () => {
      this.#count();
      this.#watches.delete(watch);
    };
  }

  /** May be called twice. */
  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  /** A watch that a replaced server left open does not count. */
  get #inContact(): boolean {
    return [...this.#watches].some(({ fence }) => fence === this.#options.fence());
  }

  #count(): void {
    const now = this.#options.timers.elapsed();
    const passed = Math.min(now - this.#countedAt, TICK_MS);
    this.#countedAt = now;
    this.#ranMs += passed;
    this.#silentMs = this.#inContact ? 0 : this.#silentMs + passed;
  }

  #wait(): void {
    this.#cancel?.();
    if (this.#closed) return;
    const ms = this.#policy === undefined ? TICK_MS : nextTickMs(this.#times(this.#policy));
    this.#cancel = this.#options.timers.after(ms, () => this.#tick());
  }

  #tick(): void {
    this.#count();
    const cause = this.#cause();
    if (cause === undefined) {
      this.#wait();
      return;
    }
    this.close();
    this.#options.onEnd(cause);
  }

  #cause(): EndCause | undefined {
    if (this.#policy === undefined) return undefined;
    const due = endDue(this.#times(this.#policy));
    if (due !== "if_idle") return due;
    const lifetimeMs = this.#policy.lifetimeSeconds * 1000;
    const { activity } = this.#options;
    // Only what seems idle is looked into: that reads every process, and begins a new stretch of time for the next look.
    if (!activity.seemsIdle({ lifetimeMs })) return undefined;
    return activity.judge({ lifetimeMs }).state === "idle" ? "idle_without_server" : undefined;
  }

  #times(policy: Policy): Times {
    return { policy, ranMs: this.#ranMs, silentMs: this.#silentMs };
  }
}

interface Times {
  readonly policy: Policy;
  readonly ranMs: number;
  readonly silentMs: number;
}

/** What the times alone say. */
function endDue(times: Times): "max_lifetime" | "orphan_limit" | "if_idle" | undefined {
  const left = leftMs(times);
  if (left.age <= 0) return "max_lifetime";
  if (left.orphan <= 0) return "orphan_limit";
  return left.idle <= 0 ? "if_idle" : undefined;
}

/** Never far past a deadline, and never more often than it matters. */
function nextTickMs(times: Times): number {
  return Math.min(TICK_MS, ...Object.values(leftMs(times)).filter((ms) => ms > 0));
}

function leftMs({ policy, ranMs, silentMs }: Times): Record<"age" | "orphan" | "idle", number> {
  const { lifetimeSeconds, maxLifetimeSeconds, orphanLimitSeconds } = policy;
  return {
    age: (maxLifetimeSeconds ?? Number.POSITIVE_INFINITY) * 1000 - ranMs,
    orphan: orphanLimitSeconds * 1000 - silentMs,
    idle: Math.max(2 * lifetimeSeconds * 1000, LEAST_WITHOUT_SERVER_MS) - silentMs,
  };
}
