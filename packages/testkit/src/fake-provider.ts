import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AbsenceProof,
  type Capabilities,
  type Capacity,
  type Check,
  type DiskObservation,
  type DiskReport,
  type Found,
  type FoundDisk,
  type FoundInstance,
  type InstanceRef,
  type LaunchPlan,
  type Observation,
  type Provider,
  plainCapabilities,
  type SandboxRef,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type FakeKeeper, type FakeKeeperState, startFakeKeeper } from "./fake-keeper.ts";
import { diskFull, type Faults, taken, unavailable, unreachable } from "./fake-provider-faults.ts";
import { assertSafeId, isSameInstance, isSameSandbox, nameOf } from "./fake-provider-names.ts";

/** Stays after a crash, as a container or a directory does, until it is stopped. */
interface FakeInstance {
  readonly found: FoundInstance;
  readonly socketPath: string;
  keeper: FakeKeeper | undefined;
  /** How its end can be proved, once it has ended. */
  endedBy: AbsenceProof;
  isPaused: boolean;
}

const GIB = 1024 ** 3;

/** A provider in memory whose keepers are real sockets that answer just enough. Passes the provider's own suite. */
export class FakeProvider implements Provider {
  readonly kind = "fake";
  readonly capabilities: Capabilities = plainCapabilities;
  readonly faults: Faults = {};
  /** What `capacity` answers. */
  room: Capacity = {
    slots: null,
    memoryBytes: 64 * GIB,
    disk: { sizeBytes: 100 * GIB, freeBytes: 80 * GIB, inodes: 1_000_000, freeInodes: 900_000 },
  };
  /** What every launch from now on has found of the disk. */
  diskFound: DiskReport | undefined;
  /** What was asked of the backend, in order: for counting, not for asserting how. */
  readonly launches: string[] = [];
  readonly #now: () => number;
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-fake-"));
  readonly #instances = new Map<string, FakeInstance>();
  readonly #disks = new Map<string, FoundDisk>();

  /** `now`: the backend's clock. */
  constructor({ now = Date.now }: { now?: () => number } = {}) {
    this.#now = now;
  }

  async probe(): Promise<readonly Check[]> {
    const ok = this.faults.backend !== "unreachable";
    return [{ name: "fake", ok, required: true, detail: ok ? "is there" : "cannot be reached" }];
  }

  async launch(ref: InstanceRef, plan: LaunchPlan): Promise<void> {
    this.#assertReachable();
    if (this.faults.launch === "fails") throw new HoldfastError("launch_failed", "the image is broken");
    if (this.faults.launch === "diskFull") throw diskFull();
    assertLaunchable(ref);
    const there = this.#instances.get(nameOf(ref));
    if (there === undefined) this.#start(ref, plan);
    else assertAccepted(there, ref);
    if (this.faults.launch === "lostAnswer") throw unavailable("the answer was lost");
  }

  async observe(ref: InstanceRef): Promise<Observation> {
    this.#assertReachable();
    if (this.faults.observe === "fails") throw unavailable("could not look");
    if (this.faults.observe === "notFound")
      return { state: "absent", proof: "not_found", detail: "never heard of it" };
    return this.#look(ref);
  }

  async stop(ref: InstanceRef): Promise<Observation> {
    this.#assertReachable();
    if (this.faults.stop === "fails") throw unavailable("could not stop");
    const before = this.#look(ref);
    if (this.faults.stop !== "survives" && this.#find(ref) !== undefined) {
      this.kill(ref);
      this.#instances.delete(nameOf(ref));
    }
    if (this.faults.stop === "lostAnswer") throw unavailable("the answer was lost");
    // What ended before this stop ended as it did.
    return before.state === "absent" ? before : this.#look(ref);
  }

  async pause(ref: InstanceRef): Promise<Observation> {
    return this.#turn(ref, { isPaused: true });
  }

  async resume(ref: InstanceRef): Promise<Observation> {
    return this.#turn(ref, { isPaused: false });
  }

  async removeDisk(sandbox: SandboxRef): Promise<DiskObservation> {
    this.#assertReachable();
    assertSafeId(sandbox.sandboxId);
    if (this.faults.removeDisk === "fails") throw unavailable("could not remove");
    if ([...this.#instances.values()].some(({ found }) => isSameSandbox(found.ref, sandbox))) {
      throw new HoldfastError(
        "wrong_state",
        "cannot remove the disk: an instance of the sandbox still exists",
      );
    }
    const disk = this.#disks.get(sandbox.sandboxId);
    if (disk !== undefined && isSameSandbox(disk.ref, sandbox)) this.#disks.delete(sandbox.sandboxId);
    return { state: "absent", detail: "not in memory" };
  }

  async discover(): Promise<readonly Found[]> {
    this.#assertReachable();
    if (this.faults.discover === "fails") throw unavailable("the list came only in part");
    return [...[...this.#instances.values()].map(({ found }) => found), ...this.#disks.values()];
  }

  async capacity(): Promise<Capacity> {
    this.#assertReachable();
    if (this.faults.capacity === "unknown")
      throw new HoldfastError("capacity_unknown", "the fake cannot measure itself");
    return this.room;
  }

  /** As a crash would: what is left of it is not started again. */
  kill(ref: InstanceRef): void {
    const there = this.#find(ref);
    there?.keeper?.close();
    if (there !== undefined) there.keeper = undefined;
  }

  /** Everything ends at once, and what is left says so. */
  reboot(): void {
    for (const there of this.#instances.values()) {
      this.kill(there.found.ref);
      there.endedBy = "host_reset";
    }
  }

  /** One that runs, and of which nothing but its name can be read. Returns what it is found as. */
  plantLegacy({ installationId, sandboxId, generation }: InstanceRef): InstanceRef {
    const instanceId = `legacy:${nameOf({ sandboxId, generation })}`;
    const ref = { installationId, sandboxId, instanceId, generation };
    this.#add({ kind: "instance", ref, createdAt: null, lifetimeSeconds: null, fence: null, legacy: true });
    return ref;
  }

  /** What its keeper was told, and what it is to answer. */
  keeperOf(ref: InstanceRef): FakeKeeperState {
    const state = this.#find(ref)?.keeper?.state;
    if (state === undefined) throw new Error(`${nameOf(ref)} has no keeper`);
    return state;
  }

  /** Those that run. */
  refs(): InstanceRef[] {
    const running = [...this.#instances.values()].filter(({ keeper }) => keeper !== undefined);
    return running.map(({ found }) => found.ref);
  }

  /** Everything that was not removed: instances, disks, sockets. */
  leftovers(): string[] {
    const disks = [...this.#disks.keys()].map((sandboxId) => `disk ${sandboxId}`);
    return [...this.#instances.keys(), ...disks, ...readdirSync(this.#dir)];
  }

  close(): void {
    for (const ref of this.refs()) this.kill(ref);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #assertReachable(): void {
    if (this.faults.backend === "unreachable") throw unreachable();
  }

  #turn(ref: InstanceRef, { isPaused }: { isPaused: boolean }): Observation {
    this.#assertReachable();
    if (this.faults.pause === "fails") throw unavailable("could not freeze it");
    const there = this.#find(ref);
    if (there?.keeper !== undefined) {
      there.isPaused = isPaused;
      if (isPaused) there.keeper.freeze();
      else there.keeper.thaw();
    }
    return this.#look(ref);
  }

  #look(ref: InstanceRef): Observation {
    const there = this.#find(ref);
    if (there?.keeper === undefined) {
      return { state: "absent", proof: there?.endedBy ?? "exited", detail: "does not run in memory" };
    }
    return {
      state: "running",
      keeper: { kind: "unix", path: there.socketPath },
      limits: { state: "none" },
      ...(there.isPaused && { isPaused: true }),
      ...(this.diskFound !== undefined && { disk: this.diskFound }),
      detail: nameOf(ref),
    };
  }

  /** By its whole identity: another's instance of the same name is as good as not there. */
  #find(ref: InstanceRef): FakeInstance | undefined {
    const there = this.#instances.get(nameOf(ref));
    return there !== undefined && isSameInstance(there.found.ref, ref) ? there : undefined;
  }

  #start(ref: InstanceRef, { secret, lifetimeSeconds, fence }: LaunchPlan): void {
    const { installationId, sandboxId } = ref;
    const disk = this.#disks.get(sandboxId);
    if (disk !== undefined && !isSameSandbox(disk.ref, ref))
      throw taken("the disk belongs to another installation");
    const createdAt = this.#now();
    if (disk === undefined)
      this.#disks.set(sandboxId, { kind: "disk", ref: { installationId, sandboxId }, createdAt });
    this.launches.push(nameOf(ref));
    this.#add({ kind: "instance", ref, createdAt, lifetimeSeconds, fence, legacy: false }, secret);
  }

  #add(found: FoundInstance, secret = "nobody knows it"): void {
    const socketPath = join(this.#dir, `${found.ref.sandboxId}-${found.ref.generation}.sock`);
    const keeper = startFakeKeeper(found.ref, { socketPath, secret });
    this.#instances.set(nameOf(found.ref), { found, socketPath, keeper, endedBy: "exited", isPaused: false });
  }
}

function assertLaunchable(ref: InstanceRef): void {
  if (!ref.instanceId.startsWith("legacy:")) return;
  throw new HoldfastError("invalid_argument", "one of which only the name is known cannot be launched");
}

function assertAccepted({ found, keeper }: FakeInstance, ref: InstanceRef): void {
  if (!isSameInstance(found.ref, ref)) throw taken(`${nameOf(ref)} is already the name of another instance`);
  if (keeper === undefined) throw new HoldfastError("launch_failed", `${nameOf(ref)} has ended before`);
}
