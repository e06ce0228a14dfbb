import { waitsForIdle, wantsDiskGone } from "./due.ts";
import { type Holding, isHolding, type Lease, type Ledger, type SandboxRow } from "./lease.ts";

/** The next thing to do about one sandbox. */
export type Step =
  | { readonly do: "rest" }
  | { readonly do: "wait"; readonly until: number }
  | { readonly do: "launch"; readonly lease: Lease }
  /** Look at the instance, reach its keeper and admit it. */
  | { readonly do: "connect"; readonly lease: Lease }
  /** Ask its keeper whether anything holds it awake, and if not, to take no more work. */
  | { readonly do: "judge-idle"; readonly lease: Lease }
  | { readonly do: "pause"; readonly lease: Lease }
  | { readonly do: "resume"; readonly lease: Lease }
  | { readonly do: "order-stop"; readonly lease: Lease; readonly because: string }
  | { readonly do: "stop"; readonly lease: Lease }
  | { readonly do: "expire-turns"; readonly turnIds: readonly string[] }
  | { readonly do: "remove-disk" }
  | { readonly do: "bury" };

export type Acting = Exclude<Step, { do: "rest" } | { do: "wait" }>;

/** Decides the next step from what is wanted and what is known. `connected`: we hold a line to the keeper, or saw it paused. */
export function nextStep(ledger: Ledger, { connected }: { connected: boolean }): Step {
  const now = ledger.readAt;
  const steps = [
    ...(isHolding(ledger) ? [overdueTurns(ledger, now), aboutSandbox(ledger, { connected, now })] : []),
    ...(!isHolding(ledger) && ledger.lease !== undefined ? [ending(ledger.lease, now)] : []),
    ...ledger.debts.map((debt) => ending(debt, now)),
  ];
  return steps.find(isActing) ?? soonest(steps);
}

function aboutSandbox(holding: Holding, world: { connected: boolean; now: number }): Step {
  const { sandbox, lease } = holding;
  if (lease === undefined) return withoutInstance(holding, world.now);
  const unwanted = becauseOf(sandbox);
  switch (lease.phase) {
    case "reserved":
      // By the rows nothing was asked for; rows that were restored may be older than the world, so it is ended, not dropped.
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      if (world.now >= lease.notAfter) return { do: "order-stop", lease, because: "never_launched" };
      // It waits only for what the backend has to fetch first.
      return dueOr(lease, world.now, { do: "launch", lease });
    case "creating":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return overdue(lease, world.now) ?? dueOr(lease, world.now, { do: "launch", lease });
    case "starting":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return overdue(lease, world.now) ?? dueOr(lease, world.now, { do: "connect", lease });
    case "live":
    case "paused":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return whileLive(lease, world);
    case "pausing":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return atItsEnd(lease, world.now) ?? dueOr(lease, world.now, { do: "pause", lease });
    case "resuming":
      if (unwanted !== undefined) return { do: "order-stop", lease, because: unwanted };
      return atItsEnd(lease, world.now) ?? dueOr(lease, world.now, { do: "resume", lease });
    case "stop_due":
    case "stopping":
    case "quarantined":
      return ending(lease, world.now);
    case "debt":
    case "gone":
      return withoutInstance(holding, world.now);
    default:
      return lease.phase satisfies never;
  }
}

function whileLive(lease: Lease, { connected, now }: { connected: boolean; now: number }): Step {
  const end = atItsEnd(lease, now);
  if (end !== undefined) return end;
  // A next attempt in the row of one that is connected: that it was reached could not be written.
  if (!connected || lease.nextAttemptAt !== null) return dueOr(lease, now, { do: "connect", lease });
  return waitsForIdle(lease) <= now ? { do: "judge-idle", lease } : { do: "rest" };
}

function atItsEnd(lease: Lease, now: number): Step | undefined {
  if (lease.hardStopAt === null || lease.hardStopAt > now) return undefined;
  return { do: "order-stop", lease, because: "max_lifetime" };
}

/** Nothing launches without demand: a crash is repaired by the next call that needs the sandbox, not by a loop. */
function withoutInstance({ sandbox }: Holding, now: number): Step {
  if (!wantsDiskGone(sandbox)) return { do: "rest" };
  if (!sandbox.hasDisk) return { do: "bury" };
  return waitFor(sandbox.diskRetryAt, now) ?? { do: "remove-disk" };
}

/** Whatever is to end, however it came to be in the rows. */
function ending(lease: Lease, now: number): Step {
  const waits = lease.phase === "stop_due" || lease.phase === "quarantined" || lease.phase === "debt";
  // Any other phase: whoever made the attempt that is written there is gone, or the sandbox's row is.
  return (waits ? waitFor(lease.nextAttemptAt, now) : undefined) ?? { do: "stop", lease };
}

/** A client that opened a turn and went away leaks nothing. */
function overdueTurns({ sandbox }: Holding, now: number): Step {
  const turnIds = sandbox.turns.filter(({ expiresAt }) => expiresAt <= now).map(({ turnId }) => turnId);
  return turnIds.length === 0 ? { do: "rest" } : { do: "expire-turns", turnIds };
}

function overdue(lease: Lease, now: number): Step | undefined {
  if (now < lease.startupDeadlineAt) return undefined;
  return { do: "order-stop", lease, because: "startup_deadline" };
}

function dueOr(lease: Lease, now: number, step: Step): Step {
  return waitFor(lease.nextAttemptAt, now) ?? step;
}

function waitFor(until: number | null, now: number): Step | undefined {
  return until === null || until <= now ? undefined : { do: "wait", until };
}

function becauseOf({ desired, deleteReason }: SandboxRow): string | undefined {
  if (desired === "active") return undefined;
  return desired === "deleted" ? (deleteReason ?? "delete_requested") : "stop_requested";
}

function isActing(step: Step): step is Acting {
  return step.do !== "rest" && step.do !== "wait";
}

function soonest(steps: readonly Step[]): Step {
  const waits = steps.flatMap((step) => (step.do === "wait" ? [step.until] : []));
  return waits.length === 0 ? { do: "rest" } : { do: "wait", until: Math.min(...waits) };
}
