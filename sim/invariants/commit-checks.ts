import { evidenceKinds, type Lease, leaseDueAt, retryMs } from "@holdfast/core";
import type { Commit } from "../book.ts";
import { instanceOf, knew, type Scene, say } from "./scene.ts";
import { givenOnce } from "./spare-checks.ts";

const ending: ReadonlySet<string> = new Set(["stop_due", "stopping", "quarantined", "debt"]);

const running: ReadonlySet<string> = new Set(["live", "pausing", "paused", "resuming"]);

/** Everything that must hold of a transaction that changed a sandbox's rows. */
export const commitChecks: readonly ((commit: Commit, scene: Scene) => void)[] = [
  generationsOnlyGrow,
  goneOnlyOnEvidence,
  deletedOnlyWhenAllIsGone,
  turnEndAndRemovalAreOne,
  staleTicketChangesNothing,
  attemptsNeverDecrease,
  waitsCountFromTheEnd,
  everyPhaseHasATimer,
  idleOnlyWhenIdle,
  foundOnlyWhenListed,
  endedForAReason,
  givenOnce,
];

/**
 * S2: Generation and fence per sandbox only increase; never reused, also after delete + re-create within tombstone life,
 * also after restore from backup.
 */
function generationsOnlyGrow(commit: Commit, { judge, history }: Scene): void {
  const { sandbox } = commit.after;
  if (sandbox === undefined) return;
  const { id, name, generation, fence } = sandbox;
  const last = history.generations.get(id) ?? { generation: 0, fence: 0 };
  for (const { before, after } of commit.leases) {
    if (before !== undefined || after.origin !== "launch") continue;
    judge.demand(
      after.generation > last.generation && after.fence > last.fence,
      "S2",
      () => `${say(after)} got generation ${after.generation} after ${last.generation} had been handed out`,
    );
  }
  const floor = history.names.get(name) ?? 0;
  const started = commit.op === "insertSandbox" && commit.before === undefined;
  judge.demand(
    !started || generation >= floor,
    "S2",
    () => `${name} starts again from ${generation}, it was at ${floor}`,
  );
  history.generations.set(id, {
    generation: Math.max(last.generation, generation),
    fence: Math.max(last.fence, fence),
  });
  history.names.set(name, Math.max(floor, generation));
}

/** S5: `gone` is written only with an evidence record of an allowed class, which is true, and which its writer has seen. */
function goneOnlyOnEvidence({ actor, leases }: Commit, scene: Scene): void {
  const { judge, history } = scene;
  for (const { before, after } of leases) {
    if (after.phase !== "gone" || before?.phase === "gone") continue;
    const { evidence, instanceId } = after;
    judge.demand(
      evidence !== null && evidenceKinds.includes(evidence.kind),
      "S5",
      () => `${say(after)} without evidence`,
    );
    const there = instanceOf(scene, after);
    judge.demand(there === undefined || there.isGhost, "S5", () => `${say(after)} is called gone and exists`);
    const arrives = history.underWay.get(instanceId) ?? Number.NEGATIVE_INFINITY;
    // A clock that is set forward by less than anybody notices shortens every wait by as much.
    judge.demand(
      arrives <= scene.scheduler.now + scene.unnoticedMs(),
      "S5",
      () => `${say(after)} is called gone, and its launch is under way`,
    );
    const isSeen = knew(history.absences, actor, instanceId) !== undefined;
    judge.demand(isSeen, "S5", () => `${say(after)}: nobody saw it absent`);
  }
}

/** S5: delete completes only when all instances are `gone` (or debt(operator)). */
function deletedOnlyWhenAllIsGone({ op, sandboxId }: Commit, scene: Scene): void {
  if (op !== "bury") return;
  const { judge, book, history } = scene;
  for (const backend of scene.backends.values()) {
    for (const instance of backend.instances.values()) {
      const { ref, isGhost } = instance;
      if (ref.sandboxId !== sandboxId || ref.installationId !== scene.installationId()) continue;
      const isDebt = book.phaseOf(ref.instanceId) === "debt" || history.abandoned.has(ref.instanceId);
      judge.demand(isGhost || isDebt, "S5", () => `${sandboxId} is deleted while ${ref.instanceId} exists`);
    }
  }
}

/** S7: a non-persistent sandbox is removed by the same transaction that records the end of its last turn. */
function turnEndAndRemovalAreOne({ before, after, sandboxId }: Commit, { judge }: Scene): void {
  const was = before?.sandbox;
  const is = after.sandbox;
  if (was === undefined || is === undefined || was.turns.length === 0 || is.turns.length > 0) return;
  const isRight = is.policy.persistent || is.desired === "deleted";
  judge.demand(isRight, "S7", () => `the last turn of ${sandboxId} ended, and nothing removes it`);
}

/** S10: A write-back with a stale ticket changes nothing. */
function staleTicketChangesNothing({ ticket, sandboxId }: Commit, { judge, book, history }: Scene): void {
  if (ticket === undefined) return;
  const current = book.tickets.get(sandboxId);
  // A backup brings the tickets of its time back, and what their holders had sent may still arrive.
  if (current === undefined && history.wentBack) return;
  const isCurrent = current !== undefined && current.no === ticket.no && current.owner === ticket.owner;
  judge.demand(
    isCurrent,
    "S10",
    () => `${sandboxId}: ticket ${ticket.no} wrote, ${current?.no ?? "none"} is current`,
  );
}

/** S11: attempts never decrease because of a restart or a repeated request. Counted while no attempt is under way. */
function attemptsNeverDecrease(
  { op, leases, before: was, after: is }: Commit,
  { judge, history }: Scene,
): void {
  const isForced = was?.sandbox?.deleteMode !== is.sandbox?.deleteMode;
  // The clock was set, and every wait goes on from there for as long as it still had to.
  if (op === "giveBack") return;
  for (const { before, after } of leases) {
    if (!ending.has(after.phase)) history.attempts.delete(after.instanceId);
    if (!ending.has(after.phase) || after.attemptDeadlineAt !== null) continue;
    const last = history.attempts.get(after.instanceId) ?? 0;
    judge.demand(
      after.attempts >= last,
      "S11",
      () => `${say(after)}: attempts went from ${last} to ${after.attempts}`,
    );
    history.attempts.set(after.instanceId, after.attempts);
    const isSooner = before?.nextAttemptAt != null && (after.nextAttemptAt ?? 0) < before.nextAttemptAt;
    const isHurried =
      isSooner && ending.has(before.phase) && after.attempts > 0 && !isForced && !escalates(before, after);
    const isOtherSide = before?.phase !== after.phase;
    judge.demand(
      !isHurried || isOtherSide,
      "S11",
      () => `${say(after)}: the next attempt was brought forward`,
    );
  }
}

function escalates(before: Lease, after: Lease): boolean {
  return before.stopMode !== after.stopMode || before.phase === "quarantined" || after.phase === "debt";
}

/** 1.4: still present -> backoff from **now**, when the attempt is over, not from when it began. */
function waitsCountFromTheEnd({ leases, ticket }: Commit, scene: Scene): void {
  const { judge, history, scheduler, storeNow } = scene;
  // The end of an attempt is written under its ticket; an operator who gives it up in that moment wants it hunted now.
  if (ticket === undefined) return;
  for (const { before, after } of leases) {
    if (before === undefined || before.attemptDeadlineAt === null || after.attemptDeadlineAt !== null)
      continue;
    if (!ending.has(after.phase) || after.missingSince !== null || after.attempts < before.attempts) continue;
    const end = history.attemptEnds.get(after.instanceId);
    if (end === undefined || after.nextAttemptAt === null) continue;
    const least = retryMs(after.attempts, 0);
    // The clock may have been set since, before the wait was reckoned or after.
    const endByNow = storeNow() - (scheduler.now - end.at);
    const wait = after.nextAttemptAt - Math.min(end.storeTime, endByNow);
    judge.demand(
      wait >= least - 1,
      "backoff",
      () => `${say(after)}: waits ${wait} ms after its attempt, not ${least}`,
    );
  }
}

/** S12: Every row in a non-terminal phase has a due_at (no timer = bug). */
function everyPhaseHasATimer({ leases }: Commit, { judge }: Scene): void {
  for (const { after } of leases) {
    judge.demand(
      after.phase === "gone" || leaseDueAt(after) !== null,
      "S12",
      () => `${say(after)} has no timer`,
    );
  }
}

/** 1.4: idle [re-check in tx: no open turn, last_activity + lifetime <= now], and the keeper has promised to take no work. */
function idleOnlyWhenIdle({ before, after, leases, decidedAt }: Commit, scene: Scene): void {
  const { judge } = scene;
  // The only server's clock may be put back between the decision and its commit.
  const now = Math.max(after.readAt, decidedAt);
  for (const lease of leases) {
    const isOrdered = lease.after.stopReason === "idle" && lease.before?.stopReason !== "idle";
    const sandbox = before?.sandbox;
    if (!isOrdered || sandbox === undefined) continue;
    judge.demand(sandbox.turns.length === 0, "idle", () => `${say(lease.after)} is reaped in a turn`);
    const idleAt = sandbox.lastUsedAt + sandbox.policy.lifetimeSeconds * 1000;
    judge.demand(idleAt <= now, "idle", () => `${say(lease.after)} is reaped ${idleAt - now} ms early`);
    const keeper = instanceOf(scene, lease.after)?.keeper;
    const isAsked =
      lease.before?.phase === "paused" || keeper === undefined || keeper.quiescedAt !== undefined;
    judge.demand(isAsked, "idle", () => `${say(lease.after)} is reaped, and its keeper was not asked`);
  }
}

/** S9: Nothing is killed on the strength of a failed or partial listing: what gets a row was in a list that its writer had. */
function foundOnlyWhenListed({ actor, change }: Commit, { judge, history }: Scene): void {
  if (change.found === undefined) return;
  const isListed = knew(history.listed, actor, "")?.has(change.found.instanceId) ?? false;
  const { found } = change;
  judge.demand(isListed, "S9", () => `${say(found)} got a row, and nobody listed it`);
}

/** S9, S13: what lives and is wanted is ended for what it did itself, never because a list or a measurement says so. */
function endedForAReason({ after, leases }: Commit, scene: Scene): void {
  if (after.sandbox?.desired !== "active") return;
  for (const lease of leases) {
    if (
      !running.has(lease.before?.phase ?? "") ||
      !ending.has(lease.after.phase) ||
      lease.after.phase === "debt"
    )
      continue;
    const { stopReason } = lease.after;
    const isOwnEnd = stopReason === "idle" || stopReason === "max_lifetime";
    const isAlive = instanceOf(scene, lease.after) !== undefined;
    scene.judge.demand(
      isOwnEnd || !isAlive,
      "S9",
      () => `${say(lease.after)} lives, is wanted, and is ended: ${stopReason}`,
    );
  }
}
