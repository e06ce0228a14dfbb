import type {
  AbsenceProof,
  Capacity,
  DiskObservation,
  Found,
  InstanceRef,
  LaunchPlan,
  Observation,
  SandboxRef,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Faults } from "../faults.ts";
import type { Rng } from "../rng.ts";
import type { Scheduler } from "../scheduler.ts";
import { START_MS } from "../start-time.ts";
import { type KeeperEvents, SimKeeper } from "./keeper.ts";
import type { SimDraft, SimSnapshot } from "./vault.ts";

export interface SimInstance {
  readonly ref: InstanceRef;
  readonly keeper: SimKeeper;
  readonly createdAt: number;
  readonly lifetimeSeconds: number | null;
  readonly fence: number | null;
  /** Only its name can still be read. */
  readonly legacy: boolean;
  /** Nothing but force ends it. */
  readonly ignoresSigterm: boolean;
  /** Nobody promised that it could not appear: a request beyond its window, a repeated one, a revenant. */
  readonly isGhost: boolean;
  /** Nothing ends it before. */
  survivesUntil: number;
}

export interface SimDisk {
  readonly ref: SandboxRef;
  readonly createdAt: number;
  /** What was done and is kept, in order. */
  readonly log: string[];
}

/** What the backend was made to do: for the invariants. */
export interface BackendEvents extends KeeperEvents {
  launched(instance: SimInstance): void;
  ended(instance: SimInstance, because: string): void;
  diskRemoved(disk: SimDisk): void;
  /** A disk is to begin with a copy that is not there. */
  copyMissing(ref: SandboxRef, snapshotId: string): void;
  phaseOf(instanceId: string): string | undefined;
}

export interface BackendKind {
  readonly kind: string;
  /** 0: its look is authoritative, as on this machine. More: a remote interface, which answers from a cache. */
  readonly settleMs: number;
  /** It can copy disks. */
  readonly copies: boolean;
}

const GIB = 1024 ** 3;

/** A backend and its host as a second state machine, with every way in which one can misbehave. */
export class Backend {
  readonly kind: string;
  readonly settleMs: number;
  readonly instances = new Map<string, SimInstance>();
  readonly disks = new Map<string, SimDisk>();
  readonly copies: boolean;
  readonly kept = new Map<string, SimSnapshot>();
  readonly drafts = new Map<string, SimDraft>();
  readonly #scheduler: Scheduler;
  readonly #rng: Rng;
  readonly #faults: Faults;
  readonly #events: BackendEvents;
  /** Those that ended with their host. */
  readonly #reset = new Set<string>();
  /** When a look was last wrong about one: it is not wrong twice within minutes. */
  readonly #flapped = new Map<string, number>();
  readonly #skewMs: number;
  unreachableUntil = 0;
  unusableUntil = 0;
  slots: number | null = null;
  freeDiskBytes = 500 * GIB;

  constructor(
    options: BackendKind & { scheduler: Scheduler; rng: Rng; faults: Faults; events: BackendEvents },
  ) {
    this.kind = options.kind;
    this.settleMs = options.settleMs;
    this.copies = options.copies;
    this.#scheduler = options.scheduler;
    this.#rng = options.rng;
    this.#faults = options.faults;
    this.#events = options.events;
    this.#skewMs = options.rng.between(-2_000, 2_000);
  }

  get isReachable(): boolean {
    return this.unreachableUntil <= this.#scheduler.now;
  }

  /** `isLate`: after the window in which the backend promises that a request arrives, or not for the first time. */
  launch(ref: InstanceRef, plan: LaunchPlan, { isLate }: { isLate: boolean }): void {
    this.#assertReachable();
    const name = nameOf(ref);
    const phase = this.#events.phaseOf(ref.instanceId);
    if (!this.instances.has(name) && this.#faults.strikes("foreign_name_conflict", phase)) {
      this.#make({ ...ref, installationId: "another", instanceId: `foreign-${name}` }, plan, {
        isGhost: true,
      });
    }
    const there = this.instances.get(name);
    if (there !== undefined) {
      assertAccepted(there, ref);
      return;
    }
    if (this.unusableUntil > this.#scheduler.now)
      throw new HoldfastError("host_storage_unusable", "no space left", { details: { errno: "ENOSPC" } });
    const { fromSnapshot } = plan;
    if (fromSnapshot !== undefined && !this.disks.has(ref.sandboxId) && !this.kept.has(fromSnapshot)) {
      if (!isLate) this.#events.copyMissing(ref, fromSnapshot);
      throw new HoldfastError("launch_failed", `there is no snapshot ${fromSnapshot}`);
    }
    if (this.#faults.strikes("broken_image", phase))
      throw new HoldfastError("launch_failed", "the image is broken");
    this.#make(ref, plan, { legacy: this.#faults.strikes("lost_labels", phase), isGhost: isLate });
  }

  observe(ref: InstanceRef): Observation {
    this.#assertReachable();
    const there = this.#find(ref);
    if (there === undefined) return absent(this.#proof(ref));
    if (this.#flaps(ref)) return absent("not_found");
    return this.#running(there);
  }

  stop(ref: InstanceRef, mode: "graceful" | "force"): Observation {
    this.#assertReachable();
    const there = this.#find(ref);
    if (there === undefined) return absent(this.#proof(ref));
    // From its cache it knows of none, and does nothing.
    if (this.#flaps(ref)) return absent("not_found");
    const phase = this.#events.phaseOf(ref.instanceId);
    if (this.#faults.strikes("survives_stop", phase))
      there.survivesUntil = this.#scheduler.now + this.#rng.between(5_000, 900_000);
    const resists =
      there.survivesUntil > this.#scheduler.now || (there.ignoresSigterm && mode === "graceful");
    if (resists) return this.#running(there);
    this.end(there, "stopped");
    if (this.settleMs > 0 && this.#faults.strikes("ghost", phase)) this.#haunt(there);
    return absent(this.#proof(ref));
  }

  /** All of it, or nothing; what is frozen already stays so. */
  pause(ref: InstanceRef): Observation {
    return this.#set(ref, (keeper) => keeper.freeze());
  }

  resume(ref: InstanceRef): Observation {
    return this.#set(ref, (keeper) => keeper.thaw());
  }

  #set(ref: InstanceRef, change: (keeper: SimKeeper) => void): Observation {
    this.#assertReachable();
    const there = this.#find(ref);
    if (there === undefined) return absent(this.#proof(ref));
    if (this.#flaps(ref)) return absent("not_found");
    if (this.#faults.strikes("pause_fails", this.#events.phaseOf(ref.instanceId)))
      throw new HoldfastError("unavailable", "the freezer is busy");
    change(there.keeper);
    return this.#running(there);
  }

  removeDisk(sandbox: SandboxRef): DiskObservation {
    this.#assertReachable();
    if ([...this.instances.values()].some(({ ref }) => isSame(ref, sandbox)))
      throw new HoldfastError("wrong_state", "an instance of the sandbox exists");
    const disk = this.disks.get(sandbox.sandboxId);
    if (disk !== undefined && isSame(disk.ref, sandbox)) {
      this.disks.delete(sandbox.sandboxId);
      this.#events.diskRemoved(disk);
    }
    return { state: "absent", detail: "removed" };
  }

  discover(): Found[] {
    this.#assertReachable();
    if (this.#faults.strikes("discover_error"))
      throw new HoldfastError("unavailable", "a page of the list is missing");
    if (this.#faults.strikes("discover_lies_empty")) return [];
    const instances = [...this.instances.values()].map((instance) => this.#foundInstance(instance));
    const disks = [...this.disks.values()].map(({ ref, createdAt }) => {
      return { kind: "disk", ref, createdAt: this.#hostTime(createdAt) } as const;
    });
    return [...instances, ...disks];
  }

  capacity(): Capacity {
    this.#assertReachable();
    if (this.#faults.strikes("capacity_unmeasurable"))
      throw new HoldfastError("capacity_unknown", "df failed");
    return {
      slots: this.slots,
      memoryBytes: 64 * GIB,
      disk: { sizeBytes: 1000 * GIB, freeBytes: this.freeDiskBytes, inodes: 1_000_000, freeInodes: 900_000 },
    };
  }

  /** Whoever listens at this address. */
  keeperAt(path: string): SimKeeper | undefined {
    return this.instances.get(path.slice(this.kind.length + 1))?.keeper;
  }

  /** Everything on the host dies, and it comes back as another boot. */
  reboot(): void {
    for (const instance of [...this.instances.values()]) {
      this.end(instance, "host reboot");
      this.#reset.add(instance.ref.instanceId);
    }
  }

  /** An instance that somebody else made. */
  plant(ref: InstanceRef, plan: LaunchPlan, traits: { legacy?: boolean; isGhost?: boolean }): SimInstance {
    return this.#make(ref, plan, traits);
  }

  end(instance: SimInstance, because: string): void {
    if (this.instances.get(nameOf(instance.ref)) !== instance) return;
    this.instances.delete(nameOf(instance.ref));
    instance.keeper.die();
    this.#events.ended(instance, because);
  }

  #make(
    ref: InstanceRef,
    plan: LaunchPlan,
    { legacy = false, isGhost = false }: { legacy?: boolean; isGhost?: boolean },
  ): SimInstance {
    const phase = this.#events.phaseOf(ref.instanceId);
    const hangs = this.#faults.strikes("keeper_never_answers", phase);
    const drift = (this.#rng.next() - 0.5) / 100;
    const events: KeeperEvents = {
      admitted: (keeper, request) => this.#events.admitted(keeper, request),
      accepts: (keeper, command) => this.#events.accepts(keeper, command),
      worked: (keeper, commandId) => this.#worked(keeper, commandId),
      exits: (_, because) => this.end(instance, because),
    };
    const keeper = new SimKeeper({
      ref,
      secret: plan.secret,
      traits: { hangs, drift },
      scheduler: this.#scheduler,
      events,
    });
    const instance: SimInstance = {
      ref,
      keeper,
      legacy,
      isGhost,
      createdAt: this.#scheduler.now,
      lifetimeSeconds: legacy ? null : plan.lifetimeSeconds,
      fence: legacy ? null : plan.fence,
      ignoresSigterm: this.#faults.strikes("ignores_sigterm", phase),
      survivesUntil: 0,
    };
    this.instances.set(nameOf(ref), instance);
    const { installationId, sandboxId } = ref;
    if (!this.disks.has(sandboxId))
      this.disks.set(sandboxId, {
        ref: { installationId, sandboxId },
        createdAt: this.#scheduler.now,
        log: [...(this.kept.get(plan.fromSnapshot ?? "")?.log ?? [])],
      });
    this.#events.launched(instance);
    return instance;
  }

  #worked(keeper: SimKeeper, commandId: string): void {
    this.disks.get(keeper.ref.sandboxId)?.log.push(commandId);
    this.#events.worked(keeper, commandId);
  }

  /** It comes back although it was ended: what a backend with a restart policy, or a late request, can do. */
  #haunt({ ref, keeper, lifetimeSeconds, fence }: SimInstance): void {
    const run = () => {
      if (this.instances.has(nameOf(ref))) return;
      const plan = {
        spec: {},
        hostname: "ghost",
        secret: keeper.secret,
        lifetimeSeconds: lifetimeSeconds ?? 60,
        fence: fence ?? 0,
      };
      this.#make(ref, plan, { isGhost: true });
    };
    const due = this.#scheduler.now + this.#rng.between(10_000, 900_000);
    this.#scheduler.park({ op: `${nameOf(ref)} comes back as a ghost`, due, run });
  }

  #foundInstance({ ref, createdAt, lifetimeSeconds, fence, legacy }: SimInstance): Found {
    const seen = { createdAt: this.#hostTime(createdAt), lifetimeSeconds, fence, legacy };
    return { kind: "instance", ref: legacy ? legacyRef(ref) : ref, ...seen };
  }

  /** By the host's own clock, which is a little wrong. */
  #hostTime(now: number): number {
    return START_MS + now + this.#skewMs;
  }

  #flaps({ instanceId }: InstanceRef): boolean {
    if (this.settleMs === 0) return false;
    const last = this.#flapped.get(instanceId);
    if (last !== undefined && last + this.settleMs * 2 > this.#scheduler.now) return false;
    if (!this.#faults.strikes("observe_flaps", this.#events.phaseOf(instanceId))) return false;
    this.#flapped.set(instanceId, this.#scheduler.now);
    return true;
  }

  #proof({ instanceId }: InstanceRef): AbsenceProof {
    if (this.#reset.has(instanceId)) return "host_reset";
    return this.settleMs === 0 ? "exited" : "not_found";
  }

  /** By its whole identity; one that lost its labels by its name alone. */
  #find(ref: InstanceRef): SimInstance | undefined {
    const there = this.instances.get(nameOf(ref));
    if (there === undefined || there.ref.installationId !== ref.installationId) return undefined;
    return there.ref.instanceId === ref.instanceId || ref.instanceId === legacyRef(there.ref).instanceId
      ? there
      : undefined;
  }

  #running({ ref, keeper }: SimInstance): Observation {
    const path = `${this.kind}/${nameOf(ref)}`;
    const seen = { keeper: { kind: "unix", path }, limits: { state: "none" }, detail: path } as const;
    return { state: "running", ...seen, isPaused: keeper.isFrozen };
  }

  #assertReachable(): void {
    if (!this.isReachable) throw new HoldfastError("provider_unavailable", `${this.kind} cannot be reached`);
  }
}

function nameOf({ sandboxId, generation }: InstanceRef): string {
  return `hf-${sandboxId}-g${generation}`;
}

function legacyRef(ref: InstanceRef): InstanceRef {
  return { ...ref, instanceId: `legacy:${nameOf(ref)}` };
}

function assertAccepted(there: SimInstance, ref: InstanceRef): void {
  const isOurs = there.ref.installationId === ref.installationId && there.ref.instanceId === ref.instanceId;
  if (!isOurs)
    throw new HoldfastError("already_exists", "the name is taken by another instance", { started: "no" });
}

function absent(proof: AbsenceProof): Observation {
  return { state: "absent", proof, detail: `no such instance (${proof})` };
}

function isSame(a: SandboxRef, b: SandboxRef): boolean {
  return a.sandboxId === b.sandboxId && a.installationId === b.installationId;
}
