import {
  type Death,
  LeasePhase,
  type LimitsReport,
  type Policy,
  type SandboxSpec,
  type SandboxState,
} from "@holdfast/protocol";
import type { DiskHistory } from "./continuity.ts";

/** What somebody wants of a sandbox. Wishes only ever grow towards `deleted`, except that a use starts a stopped one. */
export type Desired = "active" | "stopped" | "deleted";

/** How hard a stop may be; it only ever escalates. */
export type StopMode = "graceful" | "force";

/** One unit of an agent's use. Only open ones are in the row; the timeline remembers the others. */
export interface Turn {
  readonly turnId: string;
  readonly startedAt: number;
  readonly expiresAt: number;
}

/** A client's exclusive hold. It ends by itself; whoever comes with an older fence is refused. */
export interface Claim {
  readonly claimId: string;
  readonly holder: string;
  readonly fence: number;
  /** The token itself is known to its holder alone. */
  readonly tokenHash: string;
  readonly expiresAt: number;
}

/** A port that has an address outside. */
export interface ExposedPort {
  readonly port: number;
  /**
   * Part of the address, which is shown again to whoever may see the sandbox; so it is kept as it is, like a keeper's
   * secret, and not as a hash. `null`: it is public.
   */
  readonly token: string | null;
  /** A visit starts the sandbox. */
  readonly wake: boolean;
  readonly createdAt: number;
}

/** The intent: what a user holds. */
export interface SandboxRow {
  readonly id: string;
  readonly name: string;
  readonly tenantId: string;
  readonly provider: string;
  readonly spec: SandboxSpec;
  readonly policy: Policy;
  readonly labels: Record<string, string>;
  readonly desired: Desired;
  readonly deleteMode: StopMode;
  /** Why it is to be deleted, in one word. */
  readonly deleteReason: string | null;
  /** The last ones handed out. They only grow, also over a deletion, because a successor starts from the tombstone. */
  readonly generation: number;
  readonly fence: number;
  /** There may be a disk. Set before the first instance exists, cleared only on evidence that the disk is gone. */
  readonly hasDisk: boolean;
  /** The snapshot that its next disk begins with. While it is named here, that snapshot is not removed. */
  readonly restoresFrom: string | null;
  /** `null` as long as no instance began with a part of it missing. */
  readonly diskHistory: DiskHistory | null;
  readonly createdAt: number;
  /** The last use that was written down; the keeper knows the last one of all. */
  readonly lastUsedAt: number;
  readonly turns: readonly Turn[];
  readonly claim: Claim | null;
  /** The last claim's fence handed out. */
  readonly claimFence: number;
  /** Failed launches since the last one that worked; at `MAX_LAUNCH_FAILURES` only an explicit start tries again. */
  readonly launchFailures: number;
  readonly failure: string | null;
  readonly lastDeath: Death | null;
  /** When the removal of the disk is tried again. */
  readonly diskRetryAt: number | null;
  /** How often that has failed, or the copy that must come before it. */
  readonly diskAttempts: number;
  readonly ports: readonly ExposedPort[];
}

/**
 * reserved → creating → starting → live → stop_due ⇄ stopping → gone; live → pausing → paused → resuming → live.
 * Any of them may go to `stop_due`; when the fast attempts are spent, to `quarantined`, which is tried for ever, slowly.
 * `debt` must die, too, beside another instance of the sandbox. Only evidence leads to `gone`.
 */
export const phases = LeasePhase.options;
export type Phase = LeasePhase;

/**
 * Why an instance is believed to be gone. A failed look is never evidence, and not to be found is evidence only when
 * nothing that was sent before can still arrive.
 */
export const evidenceKinds = ["never_requested", "exited", "host_reset", "not_found_after_settle"] as const;
export type EvidenceKind = (typeof evidenceKinds)[number];

export interface Evidence {
  readonly kind: EvidenceKind;
  readonly at: number;
  readonly detail: string;
}

/** What an instance may take of its host; counted until it is gone. */
export interface Reservation {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/**
 * The record under which one instance may exist: written before it exists, ended only by evidence that it does not.
 * Everything that finding and ending it needs is in this row alone; every deadline is an absolute time.
 */
export interface Lease {
  readonly instanceId: string;
  readonly installationId: string;
  readonly sandboxId: string;
  readonly tenantId: string;
  readonly provider: string;
  readonly generation: number;
  readonly fence: number;
  /** `orphan`: found, not launched by us as far as the store remembers. It is never admitted. */
  readonly origin: "launch" | "orphan";
  readonly phase: Phase;
  /** Known to the keeper and to us alone. */
  readonly secret: string;
  readonly limits: LimitsReport | null;
  readonly reservation: Reservation;
  readonly createdAt: number;
  /** Nothing may be asked of the provider later than this if nothing was asked before. */
  readonly notAfter: number;
  /** When the provider was first asked. */
  readonly createSentAt: number | null;
  /** Until then a create whose answer we do not have may still arrive: nothing that is seen before is evidence. */
  readonly settleUntil: number | null;
  readonly startupDeadlineAt: number;
  readonly admittedAt: number | null;
  /** When it is next judged whether it is idle. */
  readonly idleCheckAt: number | null;
  readonly hardStopAt: number | null;
  readonly stopReason: string | null;
  readonly stopMode: StopMode;
  readonly attempts: number;
  /** An attempt that is not over by then is given up. */
  readonly attemptDeadlineAt: number | null;
  readonly nextAttemptAt: number | null;
  /** Since when it has not been found, if the last look did not find it. */
  readonly missingSince: number | null;
  readonly lastError: string | null;
  readonly evidence: Evidence | null;
}

/** Everything that is known about one sandbox's id. An orphan's id may have instances and no sandbox. */
export interface Ledger {
  readonly sandboxId: string;
  readonly sandbox: SandboxRow | undefined;
  /** The instance that is neither gone nor a debt. There is at most one. */
  readonly lease: Lease | undefined;
  readonly debts: readonly Lease[];
  /** Grows with every write to any of these rows. */
  readonly version: number;
  /** The store's time when this was read: what its deadlines are compared with. */
  readonly readAt: number;
}

/** A sandbox that exists, with its instances. */
export interface Holding extends Ledger {
  readonly sandbox: SandboxRow;
}

export function isHolding(ledger: Ledger): ledger is Holding {
  return ledger.sandbox !== undefined;
}

/**
 * What must be gone before another instance may be launched: the sandbox's own, or one that a sweep found beside it and
 * that may have been admitted before the rows were lost. What an operator abandoned is not in the way.
 */
export function inTheWay({ lease, debts }: Pick<Ledger, "lease" | "debts">): Lease | undefined {
  return lease ?? debts.find(({ stopReason }) => stopReason === "orphan");
}

export const MAX_LAUNCH_FAILURES = 3;

/** The API's word for where a sandbox is. */
export function stateOf({
  sandbox,
  lease,
}: {
  readonly sandbox: Pick<SandboxRow, "desired" | "launchFailures">;
  readonly lease: Pick<Lease, "phase"> | undefined;
}): SandboxState {
  if (sandbox.desired === "deleted") return "deleting";
  const phase = lease?.phase ?? "gone";
  switch (phase) {
    case "gone":
    case "debt":
      return sandbox.launchFailures >= MAX_LAUNCH_FAILURES ? "failed" : "stopped";
    case "reserved":
    case "creating":
    case "starting":
      return "creating";
    case "live":
    case "pausing":
      return "running";
    case "paused":
    case "resuming":
      return "paused";
    case "stop_due":
    case "stopping":
    case "quarantined":
      return "stopping";
    default:
      return phase satisfies never;
  }
}
