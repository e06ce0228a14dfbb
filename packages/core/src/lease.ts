import type { Continuity, Death, LimitsReport, SandboxSpec, SandboxState } from "@holdfast/protocol";

/** What somebody wants of a sandbox. Wishes only ever grow towards `deleted`, except that a use starts a stopped one. */
export type Desired = "active" | "stopped" | "deleted";

/** The intent: what a user holds. */
export interface SandboxRow {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly spec: SandboxSpec;
  readonly labels: Record<string, string>;
  readonly desired: Desired;
  readonly deleteMode: "graceful" | "force";
  /** The last ones handed out. They only grow, also over a deletion, because a successor starts from the tombstone. */
  readonly generation: number;
  readonly fence: number;
  readonly createdAt: number;
  /** Failed launches since the last one that worked; at `MAX_LAUNCH_FAILURES` only an explicit start tries again. */
  readonly launchFailures: number;
  readonly failure: string | null;
  readonly lastDeath: Death | null;
  /** When the reconciler must look at it even if nobody asks; `null` when nothing is outstanding. */
  readonly dueAt: number | null;
  readonly version: number;
}

/**
 * reserved → creating → starting → live → stop_due ⇄ stopping → gone.
 * Any phase but `gone` may go to `stop_due`; only evidence leads to `gone`.
 */
export const phases = ["reserved", "creating", "starting", "live", "stop_due", "stopping", "gone"] as const;
export type Phase = (typeof phases)[number];

/** Why an instance is believed to be gone. A failed look is never evidence. */
export type EvidenceKind = "never_requested" | "exited";

export interface Evidence {
  readonly kind: EvidenceKind;
  readonly at: number;
  readonly detail: string;
}

/** The record under which one instance may exist: written before it exists, ended only by evidence that it does not. */
export interface Lease {
  readonly instanceId: string;
  readonly installationId: string;
  readonly sandboxId: string;
  readonly provider: string;
  readonly generation: number;
  readonly fence: number;
  readonly phase: Phase;
  /** Known to the keeper and to us alone. */
  readonly secret: string;
  readonly limits: LimitsReport | null;
  readonly createdAt: number;
  readonly startupDeadlineAt: number;
  readonly admittedAt: number | null;
  readonly stopReason: string | null;
  readonly stopMode: "graceful" | "force";
  readonly attempts: number;
  readonly nextAttemptAt: number | null;
  readonly lastError: string | null;
  readonly evidence: Evidence | null;
  readonly dueAt: number | null;
  readonly version: number;
}

/** A sandbox with its instance that is not proved gone, if it has one. There is at most one. */
export interface Holding {
  readonly sandbox: SandboxRow;
  readonly lease: Lease | undefined;
}

export const MAX_LAUNCH_FAILURES = 3;

/** The API's word for where a sandbox is. */
export function stateOf({ sandbox, lease }: Holding): SandboxState {
  if (sandbox.desired === "deleted") return "deleting";
  const phase = lease?.phase ?? "gone";
  switch (phase) {
    case "gone":
      return sandbox.launchFailures >= MAX_LAUNCH_FAILURES ? "failed" : "stopped";
    case "reserved":
    case "creating":
    case "starting":
      return "creating";
    case "live":
      return "running";
    case "stop_due":
    case "stopping":
      return "stopping";
    default:
      return phase satisfies never;
  }
}

/** How generation `present` relates to what the caller remembers, or without that to the generation before it. */
export function continuityOf(present: number, remembered?: number): Continuity {
  if (remembered === present) return "same-process";
  return present <= 1 ? "fresh" : "same-filesystem";
}
