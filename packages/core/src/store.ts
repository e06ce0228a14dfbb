import type { SandboxState } from "@holdfast/protocol";
import type { Holding, Lease, SandboxRow } from "./lease.ts";

/** One entry of a sandbox's timeline. */
export interface TimelineEntry {
  readonly type: string;
  readonly cause?: string;
  readonly detail?: Record<string, unknown>;
}

export interface RecordedEntry extends TimelineEntry {
  readonly seq: number;
  readonly at: number;
}

/** What is remembered of a deleted sandbox: enough to answer 410, and for a successor's generations to go on. */
export interface Tombstone {
  readonly sandboxId: string;
  readonly name: string;
  readonly generation: number;
  readonly fence: number;
  readonly deletedAt: number;
}

export type NewSandbox = Omit<SandboxRow, "generation" | "fence" | "version">;

/** What a reservation needs that the store does not know. Generation and fence are the store's to hand out. */
export type NewLease = Pick<
  Lease,
  "instanceId" | "installationId" | "sandboxId" | "provider" | "secret" | "createdAt" | "startupDeadlineAt"
>;

export interface ListFilter {
  readonly label?: { readonly key: string; readonly value?: string };
  readonly states?: readonly SandboxState[];
  /** The `next` of the page before. */
  readonly after?: number;
  readonly limit: number;
}

/**
 * The durable state. Each call is one transaction. A write names the version that it was decided on and changes
 * nothing if the row has moved on: then it answers `undefined`, and the caller reads again.
 */
export interface Store {
  /** This installation's id, made on the first start. */
  installationId(): Promise<string>;

  /** Fails with `already_exists` if a sandbox has the name. The same idempotency key gives the first sandbox back. */
  insertSandbox(
    row: NewSandbox,
    options: { idempotencyKey?: string; entry: TimelineEntry },
  ): Promise<Holding>;
  holding(sandboxId: string): Promise<Holding | undefined>;
  /** By id or by name. */
  find(idOrName: string): Promise<Holding | undefined>;
  /** In order of creation. `next` is given if there may be more. */
  list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }>;
  /** The latest one under this id or name. */
  tombstone(idOrName: string): Promise<Tombstone | undefined>;

  /** Writes the intent to launch: the next generation and fence. `undefined` if the sandbox moved on or has an instance. */
  reserve(sandbox: SandboxRow, lease: NewLease, entry: TimelineEntry): Promise<Holding | undefined>;
  /** Writes what changed in either row; both, or neither. */
  save(
    before: Holding,
    change: { sandbox?: Partial<SandboxRow>; lease?: Partial<Lease>; entry?: TimelineEntry },
  ): Promise<Holding | undefined>;
  /** Ends a sandbox that has neither instance nor disk any more: its tombstone and its removal are one transaction. */
  bury(sandbox: SandboxRow): Promise<boolean>;

  /** Sandboxes that the reconciler must look at by now, the longest overdue first. */
  due(now: number, limit: number): Promise<string[]>;
  nextDueAt(): Promise<number | undefined>;
  /** Every sandbox with an instance that is not proved gone, or with a deletion that is not finished. */
  unsettled(): Promise<string[]>;

  timeline(sandboxId: string, options: { since: number; limit: number }): Promise<RecordedEntry[]>;
  close(): void;
}
