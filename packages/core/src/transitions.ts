import type { Policy } from "@holdfast/protocol";
import { FAST_ATTEMPTS, recheckMs, retryMs } from "./backoff.ts";
import { diskFound } from "./continuity.ts";
import type { Evidence, Holding, Lease, Ledger, SandboxRow } from "./lease.ts";
import { MAX_LAUNCH_FAILURES } from "./lease.ts";
import { isSpare } from "./new-rows.ts";
import type { Observation } from "./provider.ts";
import type { Change, TimelineEntry } from "./store.ts";

// What each event changes in the rows. Nothing here looks or acts; the time and chance are given.

/** One attempt to stop is given up after this; the provider escalates to SIGKILL well before. */
export const STOP_TIMEOUT_MS = 30_000;
/** Graceful attempts before force. */
const GRACEFUL_ATTEMPTS = 2;
/** Two looks that find nothing must be this far apart to count, where a look may miss what is there. */
const CONFIRM_MS = 5_000;
/** Nothing but a look now and then: an instance that nothing else would ever ask after. */
const LONGEST_UNCHECKED_MS = 86_400_000;

/** How often to ask how far a backend is with what it fetches. */
const FETCH_LOOK_MS = 750;
/** Whoever waits sees that it goes on; a timeline that is read next week is not full of it. */
const TELL_OFTEN_MS = 5_000;
const TELL_SELDOM_MS = 30_000;
const OFTEN_FOR_MS = 60_000;

/**
 * The backend is fetching what the launch needs. As long as it says so this is no launch that hangs: its deadlines
 * move along, by the same times that they were given at the reservation.
 */
export function fetching(lease: Lease, options: { detail: Record<string, unknown>; now: number }): Change {
  const { detail, now } = options;
  const { createdAt, notAfter, startupDeadlineAt, nextAttemptAt } = lease;
  const lastLook = nextAttemptAt === null ? undefined : nextAttemptAt - FETCH_LOOK_MS;
  const waited = Math.max(0, now - (lastLook ?? now));
  const tells = lastLook === undefined || tellings(lastLook - createdAt) < tellings(now - createdAt);
  return {
    leases: {
      [lease.instanceId]: {
        nextAttemptAt: now + FETCH_LOOK_MS,
        lastError: null,
        notAfter: notAfter + waited,
        startupDeadlineAt: startupDeadlineAt + waited,
      },
    },
    ...(tells && { entries: [{ type: "fetching", detail }] }),
  };
}

/** How often somebody who waits for so long was told. */
function tellings(ms: number): number {
  const often = Math.min(ms, OFTEN_FOR_MS);
  return Math.floor(often / TELL_OFTEN_MS) + Math.floor(Math.max(0, ms - OFTEN_FOR_MS) / TELL_SELDOM_MS);
}

/** It is all there. */
export function fetched(lease: Lease, now: number): Change {
  return {
    leases: { [lease.instanceId]: { nextAttemptAt: null } },
    entries: [{ type: "fetched", detail: { seconds: Math.round((now - lease.createdAt) / 1000) } }],
  };
}

/** The provider is about to be asked. `callMs`: how long the call may take. */
export function launchSent(lease: Lease, options: { now: number; callMs: number; settleMs: number }): Change {
  const { now, callMs, settleMs } = options;
  return {
    leases: {
      [lease.instanceId]: {
        phase: "creating",
        createSentAt: lease.createSentAt ?? now,
        attempts: lease.attempts + 1,
        nextAttemptAt: null,
        settleUntil: settleMs === 0 ? null : now + callMs + settleMs,
      },
    },
    ...(lease.phase === "reserved" && {
      entries: [{ type: "launching", detail: { generation: lease.generation } }],
    }),
  };
}

/**
 * An earlier call whose answer was lost may still arrive: whoever made it was over before this one began, so that
 * counts from there, and not from the end of the time that this one might have taken.
 */
function settlesAt({ attempts, settleUntil }: Lease, callMs: number): number | null {
  return attempts <= 1 || settleUntil === null ? null : settleUntil - callMs;
}

export function launched(lease: Lease, { callMs }: { callMs: number }): Change {
  const settleUntil = settlesAt(lease, callMs);
  return { leases: { [lease.instanceId]: { phase: "starting", attempts: 0, lastError: null, settleUntil } } };
}

/** It will not work, also not the next time: what was half made is cleared away. */
export function launchFailed(
  lease: Lease,
  { error, now, callMs }: { error: string; now: number; callMs: number },
): Change {
  return {
    leases: {
      [lease.instanceId]: {
        phase: "stop_due",
        stopReason: "launch_failed",
        stopMode: "force",
        attempts: 0,
        nextAttemptAt: now,
        lastError: error,
        settleUntil: settlesAt(lease, callMs),
      },
    },
    entries: [{ type: "launch_failed", cause: "launch_failed", detail: { error } }],
  };
}

/** Nobody knows what became of it, or it was not reached: the same again a little later, within the same phase. */
export function tryAgain(
  lease: Lease,
  options: { error: string; now: number; random: number; attempts: number },
): Change {
  const { error, now, random, attempts } = options;
  const nextAttemptAt = now + retryMs(attempts, random);
  return {
    leases: { [lease.instanceId]: { attempts, nextAttemptAt, lastError: error, missingSince: null } },
  };
}

export function cameAlive(
  { sandbox, lease }: Holding & { lease: Lease },
  seen: Extract<Observation, { state: "running" }>,
  now: number,
): Change {
  const admittedAt = lease.admittedAt ?? now;
  const { maxLifetimeSeconds } = sandbox.policy;
  const isFirst = lease.admittedAt === null;
  const rested = lease.phase === "paused" || lease.phase === "resuming";
  const disk = isFirst ? diskFound(sandbox, lease.generation, seen.disk) : {};
  return {
    sandbox: {
      launchFailures: 0,
      failure: null,
      ...((isFirst || rested) && { lastUsedAt: now }),
      // Its disk is its own now; an ephemeral one's next disk begins with the same snapshot.
      ...(sandbox.restoresFrom !== null &&
        sandbox.policy.filesystem === "persistent" && { restoresFrom: null }),
      ...disk.sandbox,
    },
    leases: {
      [lease.instanceId]: {
        phase: "live",
        limits: seen.limits,
        admittedAt,
        idleCheckAt: (rested ? null : lease.idleCheckAt) ?? idleCheckAt(sandbox.policy, now),
        hardStopAt: maxLifetimeSeconds === null ? null : admittedAt + maxLifetimeSeconds * 1000,
        attempts: 0,
        nextAttemptAt: null,
        missingSince: null,
        lastError: null,
      },
    },
    entries: [
      {
        type: rested ? "resumed" : lease.phase === "live" ? "adopted" : "live",
        ...(lease.phase === "paused" && { cause: "resumed_outside" }),
        detail: { generation: lease.generation, instance: seen.detail },
      },
      ...(disk.entries ?? []),
    ],
  };
}

/** When it may be idle at the earliest, if it was used at `usedAt` for the last time. */
export function idleCheckAt({ onIdle, lifetimeSeconds }: Policy, usedAt: number): number {
  return usedAt + (onIdle === "keep" ? LONGEST_UNCHECKED_MS : lifetimeSeconds * 1000);
}

/** `undefined`: by the rows it is idle. Else when to ask again: somebody used it, or a turn is open. */
export function notIdleUntil({ sandbox }: Holding, now: number): number | undefined {
  const { policy, turns, lastUsedAt } = sandbox;
  if (policy.onIdle === "keep") return now + LONGEST_UNCHECKED_MS;
  if (turns.length > 0) return now + policy.lifetimeSeconds * 1000;
  const until = lastUsedAt + policy.lifetimeSeconds * 1000;
  return until > now ? until : undefined;
}

/** Wants the instance gone. What the sandbox's policy says of such an end is in the same change. */
export function stopOrdered(holding: Holding, lease: Lease, because: string, now: number): Change {
  const { sandbox } = holding;
  const removes = endsSandbox(sandbox, because);
  return {
    ...(removes && { sandbox: { desired: "deleted", deleteReason: because } }),
    leases: {
      [lease.instanceId]: {
        phase: "stop_due",
        stopReason: because,
        stopMode: sandbox.desired === "deleted" ? sandbox.deleteMode : "graceful",
        attempts: 0,
        nextAttemptAt: now,
        idleCheckAt: null,
      },
    },
    entries: [{ type: "stopping", cause: because }],
  };
}

function endsSandbox({ policy, desired }: SandboxRow, because: string): boolean {
  if (desired === "deleted" || (because !== "idle" && because !== "max_lifetime")) return false;
  return policy.onIdle === "remove" || (policy.onIdle === "keep" && policy.filesystem === "ephemeral");
}

/** An attempt begins: it is counted before it is made, so that a crash does not begin the ladder anew. */
export function stopSent(lease: Lease, now: number): Change {
  const phase = lease.phase === "debt" ? "debt" : "stopping";
  const deadline = now + STOP_TIMEOUT_MS;
  return {
    leases: {
      [lease.instanceId]: {
        phase,
        attempts: lease.attempts + 1,
        attemptDeadlineAt: deadline,
        nextAttemptAt: phase === "debt" ? deadline : null,
      },
    },
  };
}

export function stopModeOf(lease: Lease, sandbox: SandboxRow | undefined): Lease["stopMode"] {
  const isForced = lease.attempts > GRACEFUL_ATTEMPTS || sandbox?.deleteMode === "force";
  return isForced ? "force" : lease.stopMode;
}

/** It is still there, or nobody could tell. The wait begins now, when the attempt is over. */
export function stopMissed(lease: Lease, options: { error: string; now: number; random: number }): Change {
  const { error, now, random } = options;
  const spent = lease.attempts >= FAST_ATTEMPTS;
  const phase = lease.phase === "debt" ? "debt" : spent ? "quarantined" : "stop_due";
  const wait = spent ? recheckMs(lease.attempts, random) : retryMs(lease.attempts, random);
  return {
    leases: {
      [lease.instanceId]: {
        phase,
        attemptDeadlineAt: null,
        nextAttemptAt: now + wait,
        lastError: error,
        missingSince: null,
      },
    },
    ...(spent &&
      lease.attempts === FAST_ATTEMPTS && {
        entries: [
          {
            type: "quarantined",
            cause: lease.stopReason ?? "unknown",
            detail: { attempts: lease.attempts, error },
          },
        ],
      }),
  };
}

/** The backend could not be asked at all: that was no attempt. */
export function stopNotSent(lease: Lease, options: { error: string; now: number; random: number }): Change {
  const attempts = lease.attempts - 1;
  const phase = lease.phase === "debt" ? "debt" : attempts >= FAST_ATTEMPTS ? "quarantined" : "stop_due";
  const nextAttemptAt = options.now + retryMs(1, options.random);
  return {
    leases: {
      [lease.instanceId]: {
        phase,
        attempts,
        attemptDeadlineAt: null,
        nextAttemptAt,
        lastError: options.error,
      },
    },
  };
}

/** What a look that found nothing proves. `undefined`: nothing yet. */
export function evidenceOf(
  lease: Lease,
  seen: Extract<Observation, { state: "absent" }>,
  now: number,
): Evidence | undefined {
  if (lease.settleUntil !== null && now < lease.settleUntil) return undefined;
  if (!isMissing(lease, seen, now)) return undefined;
  const { proof, detail } = seen;
  const kind = proof === "not_found" ? "not_found_after_settle" : proof;
  const wasNeverAsked = lease.createSentAt === null && lease.origin === "launch";
  return { kind: wasNeverAsked ? "never_requested" : kind, at: now, detail };
}

/** It is not there now. One look that knows of none of that name may be wrong; two, apart, are not. */
export function isMissing(
  { missingSince }: Lease,
  { proof }: Extract<Observation, { state: "absent" }>,
  now: number,
): boolean {
  return proof !== "not_found" || (missingSince !== null && now >= missingSince + CONFIRM_MS);
}

/** One that should run was not found: it is looked for once more before that is believed. */
export function lookAgain(lease: Lease, now: number): Change {
  const missingSince = lease.missingSince ?? now;
  return { leases: { [lease.instanceId]: { missingSince, nextAttemptAt: missingSince + CONFIRM_MS } } };
}

/** It was not found, and that is not yet proof: when to look again. */
export function unproven(lease: Lease, now: number): Change {
  const phase = lease.phase === "debt" ? "debt" : "stop_due";
  const missingSince = lease.missingSince ?? now;
  const nextAttemptAt = Math.max(lease.settleUntil ?? 0, missingSince + CONFIRM_MS, now + 1);
  return {
    leases: {
      [lease.instanceId]: {
        phase,
        // It did what was asked of it: a look that must be repeated is not an attempt that failed.
        attempts: lease.attempts - 1,
        attemptDeadlineAt: null,
        missingSince,
        nextAttemptAt,
        // Why it ends is worth more than that its end is not proved yet.
        lastError: lease.lastError ?? "it was not found, which is not proof yet",
      },
    },
  };
}

/** The instance is gone, and this is how we know. */
export function concluded(ledger: Ledger, lease: Lease, evidence: Evidence): Change {
  const cause = lease.stopReason ?? "keeper_lost";
  const { sandbox } = ledger;
  const detail = lease.lastError === null ? evidence.detail : `${lease.lastError} (${evidence.detail})`;
  const isCurrent = sandbox !== undefined && lease.phase !== "debt" && lease.origin === "launch";
  return {
    ...(isCurrent && {
      sandbox: {
        ...afterEnd(sandbox, lease, { cause, detail, at: evidence.at }),
        // Nobody will ever start it again.
        ...(isSpare(sandbox) && sandbox.desired !== "deleted" && { desired: "deleted", deleteReason: cause }),
      },
    }),
    leases: {
      [lease.instanceId]: {
        phase: "gone",
        evidence,
        attemptDeadlineAt: null,
        nextAttemptAt: null,
        idleCheckAt: null,
        hardStopAt: null,
      },
    },
    entries: [goneEntry(lease, cause, evidence)],
  };
}

function afterEnd(
  sandbox: SandboxRow,
  lease: Lease,
  { cause, detail, at }: { cause: string; detail: string; at: number },
): Partial<SandboxRow> {
  if (lease.admittedAt !== null) return { lastDeath: { cause, at: new Date(at).toISOString(), detail } };
  // What was never asked for has failed only if it could not be prepared; what came after it was given up was counted then.
  const wasTried = lease.createSentAt !== null || cause === "launch_failed";
  if (sandbox.desired !== "active" || !wasTried || cause === "ghost") return {};
  return {
    launchFailures: Math.min(sandbox.launchFailures + 1, MAX_LAUNCH_FAILURES),
    failure: `${cause}: ${detail}`,
  };
}

function goneEntry(lease: Lease, cause: string, { kind, detail }: Evidence): TimelineEntry {
  return {
    type: "gone",
    cause,
    detail: { generation: lease.generation, evidence: kind, what: detail, attempts: lease.attempts },
  };
}

/**
 * Turns are over. The end of the last one of a sandbox that is not persistent is its end: one change, so that no crash
 * can come between.
 */
export function turnsEnded(
  { sandbox, lease }: Holding,
  options: { turnIds: readonly string[]; cause: string; now: number },
): Change {
  const { turnIds, cause, now } = options;
  const left = sandbox.turns.filter(({ turnId }) => !turnIds.includes(turnId));
  const ended = sandbox.turns.filter(({ turnId }) => turnIds.includes(turnId));
  const removes = left.length === 0 && !sandbox.policy.persistent && sandbox.desired !== "deleted";
  return {
    sandbox: {
      turns: left,
      lastUsedAt: now,
      ...(removes && { desired: "deleted", deleteReason: "turn_end" }),
    },
    ...(lease?.phase === "live" && {
      leases: { [lease.instanceId]: { idleCheckAt: idleCheckAt(sandbox.policy, now) } },
    }),
    entries: ended.map(({ turnId, startedAt }) => ({
      type: "turn_ended",
      cause,
      detail: { turnId, startedAt: new Date(startedAt).toISOString() },
    })),
  };
}

/** An operator's word instead of evidence: it no longer stands in the way, and is hunted on. */
export function abandoned(holding: Holding, { reason, now }: { reason: string; now: number }): Change {
  const { sandbox, lease, debts } = holding;
  const hunted: Partial<Lease> = {
    phase: "debt",
    stopReason: "abandoned",
    stopMode: "force",
    nextAttemptAt: now,
    attemptDeadlineAt: null,
    idleCheckAt: null,
    hardStopAt: null,
  };
  const left = [...(lease === undefined ? [] : [lease]), ...debts];
  return {
    // The disk of one that may still run is not removed; once it is gone the sweep finds a disk without a sandbox.
    ...(sandbox.desired === "deleted" && { sandbox: { hasDisk: false } }),
    leases: Object.fromEntries(left.map(({ instanceId }) => [instanceId, hunted])),
    entries: [
      {
        type: "abandoned",
        cause: "operator",
        actor: "operator",
        detail: { reason, ...(lease !== undefined && { generation: lease.generation, phase: lease.phase }) },
      },
    ],
  };
}

/**
 * Nobody was there to see this time pass, or the clock was set: what waits goes on waiting for as long as it still had
 * to. An absolute end stays where it is. And what is due at once is so since its creation, which is never still to come.
 */
export function shifted(
  { sandbox, lease, debts }: Ledger,
  { from, to }: { from: number; to: number },
): Change {
  const byMs = to - from;
  const move = (time: number | null) => (time === null ? null : time + byMs);
  const moved = (one: Lease): Partial<Lease> => ({
    createdAt: Math.min(one.createdAt, to),
    notAfter: one.notAfter + byMs,
    startupDeadlineAt: one.startupDeadlineAt + byMs,
    settleUntil: move(one.settleUntil),
    idleCheckAt: move(one.idleCheckAt),
    nextAttemptAt: move(one.nextAttemptAt),
    attemptDeadlineAt: move(one.attemptDeadlineAt),
    missingSince: null,
  });
  const leases = [...(lease === undefined ? [] : [lease]), ...debts];
  return {
    ...(sandbox !== undefined && {
      sandbox: {
        createdAt: Math.min(sandbox.createdAt, to),
        lastUsedAt: sandbox.lastUsedAt + byMs,
        diskRetryAt: move(sandbox.diskRetryAt),
        turns: sandbox.turns.map((turn) => ({ ...turn, expiresAt: turn.expiresAt + byMs })),
        claim:
          sandbox.claim === null ? null : { ...sandbox.claim, expiresAt: sandbox.claim.expiresAt + byMs },
      },
    }),
    leases: Object.fromEntries(leases.map((one) => [one.instanceId, moved(one)])),
  };
}
