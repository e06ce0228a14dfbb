import { LONGEST_WAIT_MS } from "./backoff.ts";
import type { Holding, Lease } from "./lease.ts";

/** The next thing to do about one sandbox. */
export type Step =
  | { readonly do: "rest" }
  | { readonly do: "wait"; readonly until: number }
  | { readonly do: "launch"; readonly lease: Lease }
  /** Look at the instance, reach its keeper and admit it. */
  | { readonly do: "connect"; readonly lease: Lease }
  | { readonly do: "order-stop"; readonly lease: Lease; readonly because: string }
  | { readonly do: "stop"; readonly lease: Lease }
  /** Nothing was ever asked of the provider for this lease. */
  | { readonly do: "drop"; readonly lease: Lease }
  | { readonly do: "remove-disk" };

/** Decides the next step from what is wanted and what is known. `connected`: we hold a line to the keeper. */
export function nextStep(holding: Holding, world: { connected: boolean; now: number }): Step {
  const { sandbox, lease } = holding;
  if (lease === undefined) return withoutInstance(holding, world.now);
  const unwanted = sandbox.desired === "active" ? undefined : becauseOf(sandbox.desired);
  switch (lease.phase) {
    case "reserved":
      return unwanted === undefined ? { do: "launch", lease } : { do: "drop", lease };
    case "creating":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return overdue(lease, world.now) ?? { do: "launch", lease };
    case "starting":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return overdue(lease, world.now) ?? dueOr(lease, world.now, { do: "connect", lease });
    case "live":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return world.connected ? { do: "rest" } : dueOr(lease, world.now, { do: "connect", lease });
    case "stop_due":
    case "stopping":
      return dueOr(lease, world.now, { do: "stop", lease });
    case "gone":
      return withoutInstance(holding, world.now);
    default:
      return lease.phase satisfies never;
  }
}

/** Nothing launches without demand: a crash is repaired by the next call that needs the sandbox, not by a loop. */
function withoutInstance({ sandbox }: Holding, now: number): Step {
  if (sandbox.desired !== "deleted") return { do: "rest" };
  return waitFor(sandbox.dueAt, now) ?? { do: "remove-disk" };
}

function overdue(lease: Lease, now: number): Step | undefined {
  if (now < lease.startupDeadlineAt) return undefined;
  return { do: "order-stop", lease, because: "startup_deadline" };
}

function dueOr(lease: Lease, now: number, step: Step): Step {
  return waitFor(lease.nextAttemptAt, now) ?? step;
}

/** A time beyond every wait of ours was written by a clock that has been put back since: nobody waits for that. */
function waitFor(until: number | null, now: number): Step | undefined {
  if (until === null || until <= now || until > now + LONGEST_WAIT_MS) return undefined;
  return { do: "wait", until };
}

function becauseOf(desired: "stopped" | "deleted"): string {
  return desired === "deleted" ? "delete_requested" : "stop_requested";
}
