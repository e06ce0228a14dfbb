import type { Lease, Ledger, SandboxRow } from "./lease.ts";

/** When somebody must look at these rows even if nobody asks; `null` when nothing is outstanding. */
export function dueAt({ sandbox, lease, debts }: Pick<Ledger, "sandbox" | "lease" | "debts">): number | null {
  return earliest([
    lease === undefined ? null : currentDueAt(lease, sandbox),
    ...debts.map(leaseDueAt),
    sandbox === undefined ? null : sandboxDueAt(sandbox, lease),
  ]);
}

/** One that nobody wants any more is due at once: whoever wrote the wish may not live to act on it. */
function currentDueAt(lease: Lease, sandbox: SandboxRow | undefined): number | null {
  const isEnding = lease.phase === "stop_due" || lease.phase === "stopping" || lease.phase === "quarantined";
  return sandbox?.desired === "active" || isEnding ? leaseDueAt(lease) : lease.createdAt;
}

/** The nearest of a lease's deadlines. Only `gone` has none: a phase without a timer would be forgotten. */
export function leaseDueAt(lease: Lease): number | null {
  switch (lease.phase) {
    case "reserved":
      return Math.min(lease.nextAttemptAt ?? lease.createdAt, lease.notAfter);
    case "creating":
    case "starting":
      return Math.min(lease.nextAttemptAt ?? lease.createdAt, lease.startupDeadlineAt);
    case "pausing":
    case "resuming":
      return earliest([lease.nextAttemptAt ?? lease.createdAt, lease.hardStopAt]);
    case "live":
    case "paused":
      // While its keeper cannot be reached nobody can judge whether it is idle: the next attempt to reach it comes first.
      return earliest([lease.nextAttemptAt ?? waitsForIdle(lease), lease.hardStopAt]);
    case "stopping":
      return lease.attemptDeadlineAt ?? lease.createdAt;
    case "stop_due":
    case "quarantined":
    case "debt":
      return lease.nextAttemptAt ?? lease.createdAt;
    case "gone":
      return null;
    default:
      return lease.phase satisfies never;
  }
}

/** When it is next judged whether it is idle: at once, if nobody wrote down when. */
export function waitsForIdle({ idleCheckAt, createdAt }: Lease): number {
  return idleCheckAt ?? createdAt;
}

function sandboxDueAt(sandbox: SandboxRow, lease: Lease | undefined): number | null {
  const disk =
    lease === undefined && wantsDiskGone(sandbox) ? (sandbox.diskRetryAt ?? sandbox.createdAt) : null;
  return earliest([disk, ...sandbox.turns.map(({ expiresAt }) => expiresAt)]);
}

/** What an ephemeral instance leaves is removed before the next one may begin; a deleted sandbox's disk goes with it. */
export function wantsDiskGone({ desired, policy, hasDisk }: SandboxRow): boolean {
  return desired === "deleted" || (policy.filesystem === "ephemeral" && hasDisk);
}

function earliest(times: readonly (number | null)[]): number | null {
  return times.reduce(
    (least, time) => (least === null || (time !== null && time < least) ? time : least),
    null,
  );
}
