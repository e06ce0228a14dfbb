import { type InstanceRef, type SandboxRef, type SnapshotRef, wantsDiskGone } from "@holdfast/core";
import type { AdmitRequest } from "@holdfast/protocol";
import type { Actor } from "../scheduler.ts";
import type { SimDisk, SimInstance } from "../world/backend.ts";
import type { SimKeeper } from "../world/keeper.ts";
import { by, type Scene } from "./scene.ts";

/** The grace of an instance whose sandbox is known, by 1.8; one whose sandbox is not has longer. */
const CREATION_GRACE_MS = 120_000;

/**
 * S1: At most one admitted instance per sandbox. Intervals [gate open, proven dead] never overlap (exception:
 * debt(operator), explicit, audited; debt(orphan/ghost) is never admitted).
 */
export function oneAdmitted(keeper: SimKeeper, scene: Scene): void {
  const { judge, history, book } = scene;
  const { instanceId, sandboxId, installationId } = keeper.ref;
  for (const backend of scene.backends.values()) {
    for (const { keeper: other } of backend.instances.values()) {
      const isSame = other.ref.sandboxId === sandboxId && other.ref.installationId === installationId;
      if (!isSame || other.ref.instanceId === instanceId || !other.isAdmitted || !other.alive) continue;
      const isGivenUp = history.abandoned.has(other.ref.instanceId);
      judge.demand(
        isGivenUp,
        "S1",
        () => `${instanceId} is admitted while ${other.ref.instanceId} of ${sandboxId} is`,
      );
    }
  }
  const isDebt = book.phaseOf(instanceId) === "debt" && !history.abandoned.has(instanceId);
  judge.demand(!isDebt, "S1", () => `${instanceId} is a debt, and is admitted`);
}

/** S3: A keeper never acts on a request with a lower fence than the highest it has seen. */
export function onlyTheHighestFence(keeper: SimKeeper, fence: number, { judge }: Scene): void {
  judge.demand(
    fence >= keeper.fence,
    "S3",
    () => `${keeper.ref.instanceId} works for fence ${fence} after ${keeper.fence}`,
  );
}

/**
 * S4: No instance is admitted for a sandbox whose desired state is deleted/stopped. The gate is opened on a read of the
 * rows that nothing else came after.
 */
export function admittedOnAFreshRead(actor: Actor, { instanceId }: AdmitRequest, scene: Scene): void {
  const { judge, history } = scene;
  const read = history.wantedReads.get(by(actor, instanceId)) ?? -1;
  const greeted = history.greetings.get(by(actor, instanceId)) ?? 0;
  judge.demand(read > greeted, "S4", () => `${instanceId} is admitted, and no fresh read wants it`);
}

/** S6: Every create call was preceded by a committed row with that instance id. */
export function launchedFromARow({ instanceId, generation }: InstanceRef, { judge, book }: Scene): void {
  const lease = book.leases.get(instanceId);
  const isWritten = lease !== undefined && lease.generation === generation && lease.createSentAt !== null;
  judge.demand(isWritten, "S6", () => `${instanceId} is launched, and no row says so`);
}

/** 1.5: whoever asks something of a provider has the ticket at that moment. */
export function underATicket(actor: Actor, op: string, sandboxId: string, scene: Scene): void {
  const { judge, book } = scene;
  const ticket = book.tickets.get(sandboxId);
  const isValid =
    ticket?.owner === scene.ownerOf(actor) && (scene.isAlone() || ticket.until > scene.storeNow());
  judge.demand(isValid, "ticket", () => `${actor.name} sends ${op} for ${sandboxId} without a valid ticket`);
}

/** S7: a persistent volume is never removed while desired != deleted. */
export function diskNotWanted({ ref, log }: SimDisk, scene: Scene): void {
  const { judge, book, history } = scene;
  onlyOurs("removal of a disk", ref, scene);
  const sandbox = book.ledgers.get(ref.sandboxId)?.sandbox;
  // A removal that was under way when a backup was restored was wanted when it was sent.
  const wasDeleted = history.deleted.has(ref.sandboxId);
  const isEphemeral = sandbox?.policy.filesystem === "ephemeral";
  const isEmpty = sandbox === undefined && log.length === 0;
  const isUnwanted = wasDeleted || isEphemeral || isEmpty;
  judge.demand(
    isUnwanted,
    "S7",
    () => `the disk of ${ref.sandboxId} was removed, and it is ${sandbox?.desired ?? "forgotten"}`,
  );
}

/** A snapshot is not removed while a sandbox is still to begin with it. */
export function copyNotNeeded({ snapshotId }: SnapshotRef, { judge, book, history }: Scene): void {
  const needs = [...book.ledgers.values()].find(({ sandbox }) => sandbox?.restoresFrom === snapshotId);
  judge.demand(
    needs === undefined || history.wentBack,
    "snapshots",
    () => `${snapshotId} is removed, and ${needs?.sandboxId} is to begin with it`,
  );
}

/** What a disk is to begin with is there; unless its sandbox came back from a backup, and the snapshot did not. */
export function copyIsThere({ sandboxId }: SandboxRef, snapshotId: string, { judge, history }: Scene): void {
  judge.demand(
    history.wentBack,
    "snapshots",
    () => `${sandboxId} is to begin with ${snapshotId}, which is not there`,
  );
}

/** S13: A capacity rejection or unmeasurable capacity never destroys anything: what is ended is unwanted by its rows. */
export function destroyedForAReason(op: string, ref: InstanceRef | SandboxRef, scene: Scene): void {
  const { judge, book } = scene;
  if ("instanceId" in ref) {
    const reason = book.leases.get(ref.instanceId)?.stopReason ?? null;
    judge.demand(
      reason !== null && reasons.has(reason),
      "S13",
      () => `${op} of ${ref.instanceId}: ${reason}`,
    );
    return;
  }
  const sandbox = book.ledgers.get(ref.sandboxId)?.sandbox;
  const isUnwanted = sandbox === undefined || wantsDiskGone(sandbox);
  judge.demand(isUnwanted, "S13", () => `${op} of ${ref.sandboxId}, which is ${sandbox?.desired}`);
}

/** None of them is that somebody else needs room; of a spare it is, and nothing else is given up. */
const reasons = new Set([
  "abandoned",
  "delete_requested",
  "ghost",
  "idle",
  "keeper_lost",
  "launch_failed",
  "max_lifetime",
  "never_launched",
  "orphan",
  "spare_given_up",
  "startup_deadline",
  "stop_requested",
  "turn_end",
]);

/** S9: Nothing without our installation id is ever touched. */
export function onlyOurs(op: string, ref: SandboxRef, scene: Scene): void {
  const isOurs = ref.installationId === scene.installationId();
  scene.judge.demand(isOurs, "S9", () => `${op} of something that is ${ref.installationId}'s`);
}

/** 1.8: an orphan is left alone for its grace. */
export function orphanAfterItsGrace(instanceId: string, scene: Scene): void {
  const { judge, book, scheduler, history } = scene;
  const lease = book.leases.get(instanceId);
  if (lease?.origin !== "orphan" || scene.wasClockSet()) return;
  // An operator who gives it up says that nobody will come for it; and who needs the sandbox has come.
  if (lease.stopReason === "abandoned" || history.needed.has(instanceId)) return;
  const found = [...scene.backends.values()].flatMap(({ instances }) => [...instances.values()]);
  const instance = found.find(({ ref }) => ref.instanceId === instanceId);
  if (instance === undefined || instance.legacy) return;
  const ledger = book.ledgers.get(lease.sandboxId);
  const isKnown = ledger?.sandbox !== undefined || history.generations.has(lease.sandboxId);
  if (ledger?.sandbox === undefined && isKnown && !history.forgotten.has(lease.sandboxId)) return;
  const isNewer = history.forgotten.has(lease.sandboxId);
  const longest = Math.max((instance.lifetimeSeconds ?? 0) * 2000, 600_000);
  const grace = isNewer ? longest : CREATION_GRACE_MS;
  const age = scheduler.now - instance.createdAt;
  judge.demand(
    age >= grace - clocksApartMs(scheduler.now),
    "orphan",
    () => `${instanceId} is stopped at the age of ${age} ms, not ${grace}`,
  );
}

/** An age is counted from a host's clock, 2 s off, to the store's: an only server's is 5 s off, and drifts by 0.1 %. */
function clocksApartMs(elapsedMs: number): number {
  return 7_000 + elapsedMs / 1_000;
}

/** Product: never killed while used. What idleness ends has nothing in flight. */
export function idleEndKillsNothing(
  { ref, keeper }: SimInstance,
  because: string,
  { judge, book }: Scene,
): void {
  const lease = book.leases.get(ref.instanceId);
  // What is frozen does nothing, whatever it had begun: its rows alone say whether somebody uses it.
  if (because !== "stopped" || lease?.stopReason !== "idle" || keeper.isFrozen) return;
  judge.demand(
    keeper.running().length === 0,
    "idle",
    () => `${ref.instanceId} is reaped in the middle of a command`,
  );
}

/** S7: Acked data: an output acknowledged to the client is in the store (here: on the disk, as long as there is a sandbox). */
export function ackedIsOnTheDisk(
  sandboxId: string,
  commandId: string,
  { judge, backends, book }: Scene,
): void {
  const sandbox = book.ledgers.get(sandboxId)?.sandbox;
  if (sandbox === undefined || sandbox.desired === "deleted" || sandbox.policy.filesystem === "ephemeral")
    return;
  const isThere = [...backends.values()].some(({ disks }) => disks.get(sandboxId)?.log.includes(commandId));
  judge.demand(isThere, "S7", () => `${commandId} of ${sandboxId} was acknowledged and is not on the disk`);
}

/** 1.4: an attempt to stop is counted in its row before it is made. */
export function stopIsCounted(instanceId: string, { judge, book, history }: Scene): void {
  const lease = book.leases.get(instanceId);
  // An operator's word may come between the row and the call: from then on it has no deadline, and its count.
  const isUnderWay = lease?.attemptDeadlineAt !== null || history.abandoned.has(instanceId);
  const isCounted = lease !== undefined && lease.attempts > 0 && isUnderWay;
  judge.demand(isCounted, "S11", () => `${instanceId} is stopped, and its row does not count the attempt`);
}

/** S5: whoever is told that a sandbox is gone can rely on it. */
export function toldGoneIsGone(sandboxId: string, { judge, backends, history, book }: Scene): void {
  const instances = [...backends.values()].flatMap(({ instances }) => [...instances.values()]);
  const left = instances.find(({ ref, isGhost }) => {
    const isGivenUp = history.abandoned.has(ref.instanceId) || book.phaseOf(ref.instanceId) === "debt";
    return ref.sandboxId === sandboxId && !isGhost && !isGivenUp;
  });
  judge.demand(
    left === undefined,
    "S5",
    () => `${sandboxId} is called gone, and ${left?.ref.instanceId} exists`,
  );
}
