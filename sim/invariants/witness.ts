import type {
  Found,
  Host,
  InstanceRef,
  Lease,
  Ledger,
  Observation,
  SandboxRef,
  SnapshotRef,
  Store,
} from "@holdfast/core";
import type { AdmitRequest } from "@holdfast/protocol";
import type { Commit } from "../book.ts";
import type { Actor } from "../scheduler.ts";
import type { BackendEvents, SimDisk, SimInstance } from "../world/backend.ts";
import type { KeeperWitness } from "../world/door.ts";
import type { SimKeeper } from "../world/keeper.ts";
import type { ProviderWitness } from "../world/provider-port.ts";
import type { StoreWitness } from "../world/store-port.ts";
import { capacityHolds } from "./capacity-check.ts";
import { commitChecks } from "./commit-checks.ts";
import { QuietHost } from "./quiet-host.ts";
import { Rates } from "./rates.ts";
import { by, numbered, type Scene } from "./scene.ts";
import { spareIsUntouched, workedForSomebody } from "./spare-checks.ts";
import * as check from "./world-checks.ts";

/** Sees every call and every effect as it happens, remembers what later checks need, and has them made. */
export class Witness implements StoreWitness, ProviderWitness, KeeperWitness, BackendEvents {
  readonly #scene: Scene;
  readonly rates: Rates;
  readonly #quietHost: QuietHost;

  constructor(scene: Scene) {
    this.#scene = scene;
    this.rates = new Rates(scene);
    this.#quietHost = new QuietHost(scene);
  }

  phaseOf(instanceId: string): string | undefined {
    return this.#scene.book.phaseOf(instanceId);
  }

  asks(): void {}

  applied(actor: Actor, op: keyof Store, args: readonly unknown[], answer: unknown): void {
    if (op === "hosts") this.#quietHost.told(actor, answer as readonly Host[]);
    if (op === "saveHost") this.#quietHost.told(actor, [answer as Host]);
    if (op === "ledger" || op === "holding" || op === "give") this.#read(actor, answer as Ledger | undefined);
    for (const commit of this.#scene.book.enter(actor, op, args, answer)) this.#committed(commit, args);
  }

  #committed(commit: Commit, args: readonly unknown[]): void {
    const { history, coverage } = this.#scene;
    if (commit.after.sandbox?.desired === "deleted") history.deleted.add(commit.sandboxId);
    for (const { before, after } of commit.leases) {
      const from = before?.phase ?? "none";
      if (from !== after.phase) coverage.sometimes(`transition ${from} -> ${after.phase}`);
      // Only an operator makes a debt of an instance that had its own row.
      if (after.phase === "debt" && from !== "debt" && from !== "gone" && from !== "none")
        history.abandoned.add(after.instanceId);
      if (isNeeded(commit, before, after)) history.needed.add(after.instanceId);
    }
    this.rates.committed(commit);
    for (const holds of commitChecks) holds(commit, this.#scene);
    capacityHolds(commit, args, this.#scene);
  }

  #read(actor: Actor, ledger: Ledger | undefined): void {
    const { history, scheduler } = this.#scene;
    if (ledger?.lease === undefined || ledger.sandbox?.desired !== "active") return;
    history.wantedReads.set(by(actor, ledger.lease.instanceId), scheduler.steps);
  }

  refused(_: Actor, op: keyof Store, error: unknown): void {
    const code = (error as { code?: string }).code ?? "defect";
    this.#scene.coverage.sometimes(`store refuses ${op}: ${code}`);
    const isDefect = code === "internal" || code === "defect";
    this.#scene.judge.demand(!isDefect, "store", () => `${op} failed: ${String(error)}`);
  }

  sends({ actor, op, ref }: Parameters<ProviderWitness["sends"]>[0]): void {
    check.onlyOurs(op, ref, this.#scene);
    if ("instanceId" in ref) this.rates.asked(ref.instanceId, op);
    if (op === "observe") return;
    if (op === "stop" || op === "removeDisk") check.destroyedForAReason(op, ref, this.#scene);
    // What is left of a sandbox that was deleted belongs to nobody who could have a ticket for it.
    if (op !== "removeDisk" || this.#scene.book.ledgers.get(ref.sandboxId)?.sandbox !== undefined)
      check.underATicket(actor, op, ref.sandboxId, this.#scene);
    if (op === "launch" && "instanceId" in ref) check.launchedFromARow(ref, this.#scene);
    if (op === "stop" && "instanceId" in ref) {
      check.orphanAfterItsGrace(ref.instanceId, this.#scene);
      check.stopIsCounted(ref.instanceId, this.#scene);
    }
  }

  launchUnderWay({ instanceId }: InstanceRef, until: number): void {
    const { underWay } = this.#scene.history;
    underWay.set(instanceId, Math.max(underWay.get(instanceId) ?? 0, until));
  }

  saw(actor: Actor, { instanceId }: InstanceRef, seen: Observation): void {
    const { history, scheduler } = this.#scene;
    if (seen.state === "absent") history.absences.set(by(actor, instanceId), scheduler.now);
  }

  pausedLate({ instanceId }: InstanceRef): void {
    this.#scene.history.pausedOutside.add(instanceId);
  }

  stopEnded({ instanceId }: InstanceRef): void {
    const { history, scheduler, storeNow } = this.#scene;
    history.attemptEnds.set(instanceId, { storeTime: storeNow(), at: scheduler.now });
  }

  listed(actor: Actor, _: string, found: readonly Found[]): void {
    const ids = found.flatMap((one) => (one.kind === "instance" ? [one.ref.instanceId] : []));
    const { listed } = this.#scene.history;
    const all = listed.get(by(actor, "")) ?? new Set();
    for (const id of ids) all.add(id);
    listed.set(by(actor, ""), all);
    for (const one of found) if (one.kind === "instance") this.#isKnownAgain(one.ref);
  }

  /** From now on the servers know of its generation, whatever a restored backup has forgotten. */
  #isKnownAgain(ref: InstanceRef): void {
    const { unlisted, generations } = this.#scene.history;
    const found = unlisted.get(numbered(ref));
    if (found === undefined || ref.installationId !== found.installationId) return;
    unlisted.delete(numbered(ref));
    const { sandboxId, generation } = found;
    const last = generations.get(sandboxId) ?? { generation: 0, fence: 0 };
    if (generation <= last.generation) return;
    generations.set(sandboxId, { generation, fence: Math.max(last.fence, found.fence ?? 0, generation) });
  }

  called(actor: Actor, kind: string, op: string): void {
    this.rates.called(kind, op);
    this.#quietHost.called(actor, kind, op);
  }

  greeted(actor: Actor, instanceId: string): void {
    this.#scene.history.greetings.set(by(actor, instanceId), this.#scene.scheduler.steps);
  }

  admits(actor: Actor, request: AdmitRequest): void {
    check.admittedOnAFreshRead(actor, request, this.#scene);
  }

  admitted(keeper: SimKeeper, request: AdmitRequest): void {
    this.#scene.coverage.sometimes("a keeper is admitted");
    check.oneAdmitted(keeper, this.#scene);
    spareIsUntouched(keeper, request, this.#scene);
  }

  accepts(keeper: SimKeeper, { fence }: { fence: number }): void {
    check.onlyTheHighestFence(keeper, fence, this.#scene);
    workedForSomebody(keeper, this.#scene);
  }

  worked(): void {
    this.#scene.coverage.sometimes("work is done");
  }

  exits(_: SimKeeper, because: string): void {
    this.#scene.coverage.sometimes(`a keeper ends: ${because}`);
  }

  launched({ ref }: SimInstance): void {
    this.#scene.history.underWay.delete(ref.instanceId);
  }

  ended(instance: SimInstance, because: string): void {
    this.#scene.coverage.sometimes(`an instance ends: ${because}`);
    if (because === "stopped") check.onlyOurs("stop", instance.ref, this.#scene);
    check.idleEndKillsNothing(instance, because, this.#scene);
  }

  diskRemoved(disk: SimDisk): void {
    check.diskNotWanted(disk, this.#scene);
  }

  tended(kind: string, op: string): void {
    this.rates.called(kind, `vault ${op}`);
  }

  snapshotRemoved(ref: SnapshotRef): void {
    check.copyNotNeeded(ref, this.#scene);
  }

  copyMissing(ref: SandboxRef, snapshotId: string): void {
    check.copyIsThere(ref, snapshotId, this.#scene);
  }

  /** A client was told that its output is safe. */
  acked({ sandboxId }: SandboxRef, commandId: string): void {
    const { acked } = this.#scene.history;
    acked.set(sandboxId, [...(acked.get(sandboxId) ?? []), commandId]);
    check.ackedIsOnTheDisk(sandboxId, commandId, this.#scene);
  }

  /** A client was told that nothing is left of it. */
  toldGone(sandboxId: string): void {
    check.toldGoneIsGone(sandboxId, this.#scene);
  }
}

/** Whoever brings the end of an orphan forward needs its sandbox: a call does, which has no ticket. */
function isNeeded({ op, ticket }: Commit, before: Lease | undefined, after: Lease): boolean {
  if (op !== "save" || ticket !== undefined || before?.origin !== "orphan") return false;
  return (after.nextAttemptAt ?? Number.POSITIVE_INFINITY) < (before.nextAttemptAt ?? 0);
}
