import {
  type Clock,
  type Holding,
  type KeeperControl,
  type Lease,
  type SandboxRow,
  stateOf,
} from "@holdfast/core";
import type { InstanceInfo, Why } from "@holdfast/protocol";
import { standingClaim } from "./claims.ts";
import { within } from "./deadline.ts";
import type { Keepers } from "./keepers.ts";

/** `why` is for looking: a keeper that does not answer at once is part of the answer. */
const LOOK_MS = 1_000;

/** What its keeper says of it now; `undefined` if there is none to ask. */
export interface Activity {
  readonly idleForMs: number;
  readonly heldAwakeBy: readonly string[];
}

/** Asks the keeper, which does not count as use. */
export async function activityOf(
  { lease }: Holding,
  { keepers, clock }: { keepers: Keepers<KeeperControl>; clock: Clock },
): Promise<Activity | string | undefined> {
  const link = lease === undefined ? undefined : keepers.link(lease.instanceId);
  if (link === undefined) return lease?.phase === "live" ? "its keeper is not connected" : undefined;
  try {
    return await within(clock, { ms: LOOK_MS }, () => link.activity());
  } catch (error) {
    return `its keeper does not answer: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Why it lives, when it will be reaped and what prevents that, and why it last died. */
export function explain(holding: Holding, activity: Activity | string | undefined): Why {
  const { sandbox, lease, debts } = holding;
  const { turns, policy, lastDeath, failure } = sandbox;
  const claim = standingClaim(holding);
  const known = typeof activity === "object" ? activity : undefined;
  const held = [...turns.map(({ turnId }) => `turn ${turnId} is open`), ...(known?.heldAwakeBy ?? [])];
  return {
    sandbox: { id: sandbox.id, name: sandbox.name, state: stateOf(holding), generation: sandbox.generation },
    alive: aliveBecause(holding, activity),
    heldAwakeBy: held,
    ...(known !== undefined && { idleForSeconds: Math.floor(known.idleForMs / 1000) }),
    ...reaping(holding, known),
    onIdle: policy.onIdle,
    ...(typeof lease?.hardStopAt === "number" && { endsAt: iso(lease.hardStopAt) }),
    openTurns: turns.map(({ turnId, startedAt, expiresAt }) => ({
      turnId,
      startedAt: iso(startedAt),
      expiresAt: iso(expiresAt),
    })),
    ...(claim !== undefined && {
      claim: {
        claimId: claim.claimId,
        holder: claim.holder,
        fence: claim.fence,
        expiresAt: iso(claim.expiresAt),
      },
    }),
    ...(lease !== undefined && { instance: instanceInfo(lease) }),
    debts: debts.map(instanceInfo),
    ...(lastDeath !== null && { lastDeath }),
    ...(failure !== null && { failure }),
    next: nextOf(holding, { held, known }),
  };
}

function aliveBecause({ sandbox, lease }: Holding, activity: Activity | string | undefined): string[] {
  if (lease === undefined) return [];
  const { policy } = sandbox;
  if (lease.phase !== "live") return [`its instance ${inWords[lease.phase]}${because(lease.stopReason)}`];
  const idle =
    policy.onIdle === "keep"
      ? "it is kept however idle it is"
      : `it was used at ${clockTime(sandbox.lastUsedAt)}, and may be idle for ${duration(policy.lifetimeSeconds)}`;
  return [idle, ...(typeof activity === "string" ? [activity] : [])];
}

const inWords: Record<Exclude<Lease["phase"], "live">, string> = {
  pausing: "is being paused",
  paused: "is paused: its processes are there, and none of them runs",
  resuming: "is being resumed",
  reserved: "is being started",
  creating: "is being started",
  starting: "is being started",
  stop_due: "is being stopped",
  stopping: "is being stopped",
  quarantined: "does not stop",
  debt: "is still hunted",
  gone: "is gone",
};

function reaping(holding: Holding, known: Activity | undefined): { reapsAt?: string } {
  const at = idleEnd(holding, known);
  return at === undefined ? {} : { reapsAt: iso(at) };
}

/** When idleness would end it, if nothing used it until then. */
function idleEnd({ sandbox, lease, readAt }: Holding, known: Activity | undefined): number | undefined {
  const { onIdle, lifetimeSeconds } = sandbox.policy;
  const isRunning = lease?.phase === "live" || lease?.phase === "paused";
  if (!isRunning || onIdle === "keep") return undefined;
  const idleSince = known === undefined ? sandbox.lastUsedAt : readAt - known.idleForMs;
  return Math.max(idleSince + lifetimeSeconds * 1000, readAt);
}

function nextOf(
  holding: Holding,
  { held, known }: { held: readonly string[]; known: Activity | undefined },
): string {
  const { sandbox, lease } = holding;
  if (lease === undefined) return withoutInstance(holding);
  if (lease.phase !== "live" && lease.phase !== "paused") return ending(lease);
  const idleAt = held.length > 0 ? undefined : idleEnd(holding, known);
  const hardAt = lease.hardStopAt ?? undefined;
  if (hardAt !== undefined && (idleAt === undefined || hardAt <= idleAt)) {
    return `whatever it does, it is ${endedAt(sandbox, hardAt)}`;
  }
  if (idleAt !== undefined) return `unless it is used, it is ${endedAt(sandbox, idleAt)}`;
  return held.length > 0
    ? `nothing, while it is held awake: ${held.join("; ")}`
    : "nothing: idleness does not end it";
}

function endedAt(sandbox: SandboxRow, at: number): string {
  const { onIdle, filesystem } = sandbox.policy;
  return onIdle === "remove" || filesystem === "ephemeral"
    ? `removed at ${clockTime(at)}, with its files`
    : `stopped at ${clockTime(at)}; its files are kept`;
}

function withoutInstance({ sandbox, debts }: Holding): string {
  if (sandbox.desired === "deleted") {
    const { diskRetryAt, diskAttempts } = sandbox;
    const at = diskRetryAt === null ? "now" : `at ${clockTime(diskRetryAt)}`;
    if (diskAttempts > 0)
      return `its disk could not be removed ${times(diskAttempts)}; the next attempt is ${at}, and so on for ever`;
    return `its disk is removed${diskRetryAt === null ? "" : `, ${at}`}; then it is gone`;
  }
  if (debts.length > 0) return "the next use starts it; what was abandoned is hunted on";
  return sandbox.failure === null ? "the next use starts it" : "an explicit start tries again";
}

function ending({ phase, attempts, nextAttemptAt, startupDeadlineAt, stopReason }: Lease): string {
  const at = nextAttemptAt === null ? "now" : `at ${clockTime(nextAttemptAt)}`;
  switch (phase) {
    case "reserved":
    case "creating":
    case "starting":
      return `it comes to life, or is given up at ${clockTime(startupDeadlineAt)}`;
    case "pausing":
      return `it is paused ${at}`;
    case "resuming":
      return `it is resumed ${at}`;
    case "stopping": // counted before it is made
      return `attempt ${attempts} to stop it is being made${because(stopReason)}`;
    case "quarantined":
      return `${attempts} attempts to stop it failed; the next is ${at}, and so on for ever`;
    default:
      return `attempt ${attempts + 1} to stop it is ${at}${because(stopReason)}`;
  }
}

function instanceInfo(lease: Lease): InstanceInfo {
  const { phase, provider, instanceId, generation, attempts, nextAttemptAt, lastError } = lease;
  return {
    phase,
    provider,
    instanceId,
    generation,
    since: iso(lease.createdAt),
    attempts,
    ...(nextAttemptAt !== null && { nextAttemptAt: iso(nextAttemptAt) }),
    ...(lastError !== null && { lastError }),
  };
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

function because(reason: string | null): string {
  return reason === null ? "" : ` (${reason})`;
}

/** In the largest unit that leaves no rest: `30 min`, `90 s`. */
function duration(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

/** For sentences: nobody reads milliseconds. */
function clockTime(ms: number): string {
  return `${iso(ms).slice(0, 19)}Z`;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
