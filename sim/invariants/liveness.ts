import type { Universe } from "../universe.ts";
import { settled } from "../world/store-port.ts";
import { say } from "./scene.ts";
import { noSpareIsLeft } from "./spare-checks.ts";

/** Something that must become true once nothing goes wrong any more. `undefined`: it is. */
type Liveness = (universe: Universe) => string | undefined;

/** All that must hold, in the end, of a world that was healed. */
export const livenessChecks: readonly (readonly [name: string, holds: Liveness])[] = [
  ["L1", everythingHasAnOwner],
  ["L1 (disks)", everyDiskHasAnOwner],
  ["L2", everyStopIsFinished],
  ["L3", nobodyWaits],
  ["L7", onlyWantedOnesLive],
  ["spares", noSpareIsLeft],
  ["snapshots", everyCopyIsSettled],
];

/** L1: Leak bound: every existing instance is owned by a non-terminal row or dies within B. */
function everythingHasAnOwner(universe: Universe): string | undefined {
  const { book } = universe;
  const leaked = universe.existing().find(({ ref }) => {
    const phase =
      book.phaseOf(ref.instanceId) ?? book.phaseOf(`legacy:hf-${ref.sandboxId}-g${ref.generation}`);
    return phase === undefined || phase === "gone";
  });
  return leaked === undefined ? undefined : `${leaked.ref.instanceId} exists, and no row owns it`;
}

/** Disks are covered like instances: none without an owner. */
function everyDiskHasAnOwner({ book, backends, installationId }: Universe): string | undefined {
  for (const { disks } of backends.values()) {
    for (const { ref } of disks.values()) {
      const isOwned = book.ledgers.get(ref.sandboxId)?.sandbox?.hasDisk === true;
      if (ref.installationId === installationId && !isOwned)
        return `the disk of ${ref.sandboxId} has no owner`;
    }
  }
  return undefined;
}

/** L2: Every stop/delete finishes within stop ladder + one recheck period. */
function everyStopIsFinished({ book }: Universe): string | undefined {
  const ending = book.standing().find(({ phase }) => phase !== "live" && phase !== "paused");
  if (ending !== undefined) return `${say(ending)} does not end`;
  const waiting = [...book.ledgers.values()].find(({ sandbox }) => typeof sandbox?.diskRetryAt === "number");
  if (waiting !== undefined) return `the disk of ${waiting.sandboxId} is not removed`;
  const deleted = [...book.ledgers.values()].find(({ sandbox }) => sandbox?.desired === "deleted");
  return deleted === undefined ? undefined : `${deleted.sandboxId} is not deleted`;
}

/** L3: A queued launch is admitted or answered with a typed error before its deadline. */
function nobodyWaits({ waiting }: Universe): string | undefined {
  return waiting.size === 0 ? undefined : `still waiting: ${[...waiting].join(", ")}`;
}

/** L7: Quiescence: with no workload only those live on that are to be kept, and each of them has a server. */
function onlyWantedOnesLive(universe: Universe): string | undefined {
  const { book, history } = universe;
  for (const lease of book.standing()) {
    const policy = book.ledgers.get(lease.sandboxId)?.sandbox?.policy;
    if (policy?.onIdle !== "keep") return `${say(lease)} is idle and lives on`;
    const instance = universe.find(lease.instanceId);
    // There is no line to what is paused: that it is gone is noticed when a backend tells of it, or when it is needed.
    if (instance === undefined && lease.phase === "paused") continue;
    if (instance === undefined) return `${say(lease)} is kept, and does not exist`;
    const { isFrozen } = instance.keeper;
    // What somebody else paused is noticed when a backend tells of it, or when it is needed.
    const isAsWritten =
      isFrozen === (lease.phase === "paused") || history.pausedOutside.has(lease.instanceId);
    if (!isAsWritten) return `${say(lease)} is ${isFrozen ? "" : "not "}frozen`;
    if (!isFrozen && !instance.keeper.traits.hangs && instance.keeper.contacts.size === 0)
      return `${say(lease)} has no server`;
  }
  return undefined;
}

/** No copy is half made, waits for ever, or is without its record; and no fork's own stays. */
function everyCopyIsSettled({ backends, database, history }: Universe): string | undefined {
  const { snapshots } = settled(database.store.snapshots({ limit: 1_000 }));
  const unsettled = snapshots.find(
    ({ phase, origin, usedBy }) =>
      phase === "making" ||
      (phase === "deleting" && usedBy === 0) ||
      (phase === "ready" && origin === "fork"),
  );
  if (unsettled !== undefined) return `${unsettled.id} (${unsettled.origin}) is ${unsettled.phase}`;
  const whole = new Set(
    snapshots.filter(({ phase }) => phase === "ready" || phase === "deleting").map(({ id }) => id),
  );
  for (const { kept, drafts } of backends.values()) {
    for (const id of drafts.keys()) return `${id} is half made`;
    for (const id of kept.keys()) if (!whole.delete(id)) return `${id} is there, and has no record`;
  }
  // Removed after the backup that brought its record back, and a sandbox that it brought back, too, is to begin with it.
  if (history.wentBack)
    for (const { id, phase, usedBy } of snapshots) if (phase === "deleting" && usedBy > 0) whole.delete(id);
  for (const id of whole) return `${id} has a record, and is not there`;
  return undefined;
}

/** How often a backend's copies are looked at, in the ten minutes of quiet. */
const MOST_LOOKS = 12;

/** L4: total provider calls while idle = sweep only; and a look at those that live on, once by each server that sweeps. */
export function onlySweepsRun({ witness, judge, book, replicas }: Universe): void {
  const looks = book.standing().length * replicas.length;
  for (const [call, count] of witness.rates.calls) {
    const isTending = / vault (discover|removeDrafts)$/.test(call) && count <= MOST_LOOKS;
    const isFine = isTending || /^\S+ discover$/.test(call) || (call.endsWith(" observe") && count <= looks);
    judge.demand(isFine, "L4", () => `${count} calls of ${call} while nothing is to be done`);
  }
}

/** L6: With the control plane dead for ever, every keeper dies by hard_stop_at (+ drift). */
export function everyKeeperIsDead({ backends, judge, installationId }: Universe): void {
  for (const { instances } of backends.values()) {
    for (const { ref, keeper } of instances.values()) {
      // What is paused takes no time, and lasts.
      const isOurs = ref.installationId === installationId && !keeper.traits.hangs && !keeper.isFrozen;
      judge.demand(!isOurs, "L6", () => `${ref.instanceId} lives on without a server`);
    }
  }
}
