import type { LimitsReport, SandboxSpec } from "@holdfast/protocol";
import type { SnapshotVault } from "./snapshot.ts";

/** Who an instance is. Its physical name contains sandbox id and generation; its markers carry all of it. */
export interface InstanceRef {
  readonly installationId: string;
  readonly sandboxId: string;
  readonly instanceId: string;
  readonly generation: number;
}

export interface SandboxRef {
  readonly installationId: string;
  readonly sandboxId: string;
}

/** What `launch` needs beyond the name; none of it is needed to find or to end the instance. */
export interface LaunchPlan {
  readonly spec: SandboxSpec;
  readonly hostname: string;
  /** Shared by the keeper and the server alone. */
  readonly secret: string;
  /** Written beside the name, so that whoever finds the instance without its row knows how long to leave it alone. */
  readonly lifetimeSeconds: number;
  readonly fence: number;
  /** The id of the snapshot that the disk begins with, if there is none yet. */
  readonly fromSnapshot?: string;
  /** Told now and then how far the copying of that snapshot is, also of a copy that an earlier call has begun. */
  onRestore?(progress: RestoreProgress): void;
}

/** Blocks that are shared, and holes, need no copy. */
export interface RestoreProgress {
  readonly copiedBytes: number;
  readonly sizeBytes: number;
}

/** Where a keeper can be reached. */
export type KeeperAddress = { readonly kind: "unix"; readonly path: string };

/**
 * Why it is called absent. `exited`: that very instance was seen to be over, or the place where it must be was looked
 * into and it is not there. `host_reset`: its host has started anew since. `not_found`: the backend says that it knows
 * none of that name, which a backend that answers from a cache may also say of one that is there.
 */
export type AbsenceProof = "exited" | "host_reset" | "not_found";

/** What a launch found of the sandbox's disk, before it made what was missing. */
export interface DiskReport {
  /** `new`: there was nothing. `kept`: all of it was there. `partly`: `lost` says what was not, in words. */
  readonly state: "new" | "kept" | "partly";
  readonly lost: readonly string[];
}

/**
 * Why one that nobody here ended has ended, by the backend's own facts. `killed_outside`, `removed_outside`: by
 * somebody else. `exited`: by itself.
 */
export type EndCause = "oom" | "killed_outside" | "removed_outside" | "daemon_restarted" | "exited";

export type Observation =
  | {
      readonly state: "running";
      readonly keeper: KeeperAddress;
      readonly limits: LimitsReport;
      /** Absent where a backend cannot tell: then its disks are believed to be whole. */
      readonly disk?: DiskReport;
      /** None of its processes runs, its keeper neither: nobody answers there until it is resumed. */
      readonly isPaused?: boolean;
      /** For people: what to look for on the host. */
      readonly detail: string;
    }
  /** Nothing of it exists. Only ever the result of a look that worked. */
  | {
      readonly state: "absent";
      readonly proof: AbsenceProof;
      readonly detail: string;
      /** Absent where the backend does not know. */
      readonly cause?: EndCause;
    };

export type DiskObservation = { readonly state: "present" | "absent"; readonly detail: string };

export interface FoundInstance {
  readonly kind: "instance";
  readonly ref: InstanceRef;
  /** By the backend's clock; `null` if it cannot tell. */
  readonly createdAt: number | null;
  /** From its markers; `null` on one that was made before there were such markers. */
  readonly lifetimeSeconds: number | null;
  readonly fence: number | null;
  /** Known by an older marker only: it is seen, it blocks, it is stopped, and it is never used again. */
  readonly legacy: boolean;
}

export interface FoundDisk {
  readonly kind: "disk";
  readonly ref: SandboxRef;
  readonly createdAt: number | null;
}

export type Found = FoundInstance | FoundDisk;

/** What is there to be shared out. Measured, not remembered. */
export interface Capacity {
  /** How many instances the backend itself would take; `null` if it does not say. */
  readonly slots: number | null;
  readonly memoryBytes: number | null;
  readonly disk: {
    readonly sizeBytes: number;
    readonly freeBytes: number;
    readonly inodes: number;
    readonly freeInodes: number;
  };
}

export interface Capabilities {
  readonly persistentDisk: boolean;
  /** Whether a sandbox may name the image that it starts from. */
  readonly images: boolean;
  /** How long after a create whose answer was lost a look by exact name may still miss it. */
  readonly settleMs: number;
  readonly networks: readonly ("none" | "full")[];
  /** What `full` reaches, and what it does not. */
  readonly networkDetail: string;
  /** What freezes a sandbox, or why nothing can. */
  readonly pauseDetail: string;
  readonly limits: {
    readonly enforced: boolean;
    readonly detail: string;
    readonly disk: { readonly enforced: boolean; readonly detail: string };
  };
  /** Whether a sandbox may say who its work runs as. */
  readonly users: boolean;
  readonly readOnly: boolean;
  readonly tmpfs: boolean;
  /** Directories that the operator lets sandboxes see, as he wrote them: `:ro` after one that cannot be written. */
  readonly mounts: readonly string[];
  /** Names for `runtime`; empty where it cannot be chosen. */
  readonly runtimes: readonly string[];
}

/** A backend that takes nothing special. */
export const plainCapabilities: Capabilities = {
  persistentDisk: true,
  images: false,
  settleMs: 0,
  networks: ["none", "full"],
  networkDetail: "not known",
  pauseDetail: "nothing here freezes a sandbox",
  limits: { enforced: false, detail: "none", disk: { enforced: false, detail: "none" } },
  users: false,
  readOnly: false,
  tmpfs: false,
  mounts: [],
  runtimes: [],
};

/** One thing that a backend needs from its machine, whether it is there, and what to type if it is not. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Without a required one the backend is refused; without another, something optional is missing. */
  readonly required: boolean;
  readonly detail: string;
  readonly remedy?: string;
}

/** Whether a launch would find what it needs. What is being fetched is told to whoever waits, in `detail`. */
export type Readiness =
  | { readonly state: "ready" }
  | { readonly state: "fetching"; readonly detail: Readonly<Record<string, unknown>> };

export type Pausing = (instance: InstanceRef, signal: AbortSignal) => Promise<Observation>;

/**
 * A backend that can hold instances. Named by our own id, never by a handle that we might lose. Every method may be
 * called twice, and the server may die between any two calls. A backend that cannot be reached at all says
 * `provider_unavailable`: then nothing was done, and all its rows wait for one probe.
 */
export interface Provider {
  readonly kind: string;
  /** Read instead of asking "is it docker?". Settled once `probe` has answered. */
  readonly capabilities: Capabilities;
  /** Tries what the backend needs, for real. Throws nothing: what is wrong is in the list. */
  probe(): Promise<readonly Check[]>;
  /**
   * Begins to get what a launch from this spec needs and may take long to come, such as an image, and says soon how
   * far that is; it goes on by itself, and is asked again. `launch_failed`: it cannot be had. Absent where nothing does.
   */
  prepare?(spec: SandboxSpec, signal: AbortSignal): Promise<Readiness>;
  /**
   * Makes the instance exist and its keeper start, or accepts the one that an interrupted call already made. The
   * keeper runs nothing until it is admitted. `launch_failed`: this will not work, also not the next time.
   */
  launch(instance: InstanceRef, plan: LaunchPlan, signal: AbortSignal): Promise<void>;
  /** What is true now, by exact name. A failure to look is an error, never `absent`. */
  observe(instance: InstanceRef, signal: AbortSignal): Promise<Observation>;
  /** Ends it and says what was seen afterwards. Succeeds when nothing is left. */
  stop(instance: InstanceRef, mode: "graceful" | "force", signal: AbortSignal): Promise<Observation>;
  /**
   * Freezes all of its processes, or lets them run on, and says what was seen afterwards. Both or neither: a backend
   * that cannot do it has none.
   */
  readonly pause?: Pausing | undefined;
  readonly resume?: Pausing | undefined;
  /** Removes the disk of a sandbox that has no instance, and says what was seen afterwards. */
  removeDisk(sandbox: SandboxRef, signal: AbortSignal): Promise<DiskObservation>;
  /** Every instance and every disk on this backend that carries a marker of ours, of any installation; complete, or an error. */
  discover(signal: AbortSignal): Promise<readonly Found[]>;
  /**
   * Tells of changes as the backend hears of them, until the line to it ends, with a failure or without. `undefined`
   * for a sandbox: anything may have happened. No evidence, and not complete: a reason to look at once.
   */
  watch?(onChange: (sandboxId: string | undefined) => void, signal: AbortSignal): Promise<void>;
  /** What there is. `capacity_unknown` if it cannot be measured. */
  capacity(signal: AbortSignal): Promise<Capacity>;
  /** Absent on a backend that cannot copy disks. */
  readonly snapshots?: SnapshotVault;
}
