import type { SandboxState, SnapshotState } from "@holdfast/protocol";
import type { AdmissionRules } from "./admission.ts";
import type { Holding, Lease, Ledger, Phase, Reservation, SandboxRow } from "./lease.ts";
import type { SnapshotRow } from "./snapshot.ts";

/** One entry of a sandbox's timeline. */
export interface TimelineEntry {
  readonly type: string;
  readonly cause?: string;
  /** Who wanted it: a client, the operator, a server. */
  readonly actor?: string;
  readonly detail?: Record<string, unknown>;
}

export interface RecordedEntry extends TimelineEntry {
  readonly seq: number;
  readonly at: number;
  readonly sandboxId: string;
}

/** What is remembered of a deleted sandbox: enough to answer 410, and for a successor's generations to go on. */
export interface Tombstone {
  readonly sandboxId: string;
  readonly name: string;
  readonly generation: number;
  readonly fence: number;
  readonly deletedAt: number;
  /** Why, in one word. */
  readonly cause: string | null;
  /** Not forgotten before: nothing that was ever sent for this sandbox can arrive later. */
  readonly keepUntil: number;
}

export type NewSandbox = Omit<SandboxRow, "generation" | "fence" | "claimFence" | "hasDisk">;

/** What a reservation needs that the store does not know. Generation and fence are the store's to hand out. */
export type NewLease = Pick<
  Lease,
  | "instanceId"
  | "installationId"
  | "sandboxId"
  | "tenantId"
  | "provider"
  | "secret"
  | "reservation"
  | "createdAt"
  | "notAfter"
  | "startupDeadlineAt"
>;

/** What changes in the rows of one sandbox; all of it, or nothing. */
export interface Change {
  readonly sandbox?: Partial<SandboxRow>;
  /** By instance id. */
  readonly leases?: Readonly<Record<string, Partial<Lease>>>;
  /** A row for an instance that was found without one, or one that was thought to be gone. */
  readonly found?: Lease;
  readonly entries?: readonly TimelineEntry[];
}

/** A server's short right to work on one sandbox's rows, or on one job. */
export interface Ticket {
  readonly key: string;
  readonly owner: string;
  /** Grows each time the key changes hands; what was decided under an older one changes nothing. */
  readonly no: number;
  /** By the store's clock. */
  readonly until: number;
  /** How long it is good for, from the moment it was asked for: for whoever has another clock. */
  readonly ttlMs: number;
}

/** Periodic work that one server does for all. */
export interface Job {
  readonly name: string;
  readonly ticket: Ticket;
  /** The store's time. */
  readonly readAt: number;
  /** What the last run left for this one. */
  readonly memory: Record<string, unknown>;
}

/** Whether a backend can be reached, and whether it takes new instances. One row for each. */
export interface Host {
  readonly provider: string;
  readonly failures: number;
  /** Set while it is unreachable: its rows rest until this one probe. */
  readonly nextProbeAt: number | null;
  readonly lastError: string | null;
  /** When a server last did its rounds here: nobody was watching for longer than a moment after it. */
  readonly lastSeenAt: number | null;
  /** Why it takes no new instance: a file system that an operation found unusable. */
  readonly closedBecause: string | null;
}

/** How many there are, in groups. */
export interface Census {
  readonly sandboxes: readonly { provider: string; state: SandboxState; count: number }[];
  /** Their leases are among the others. */
  readonly spares: readonly { provider: string; state: SandboxState; count: number }[];
  /** Those that are not gone, with what they may take. */
  readonly leases: readonly ({ provider: string; phase: Phase; count: number } & Reservation)[];
  readonly snapshots: readonly { provider: string; state: SnapshotState; count: number }[];
}

export interface ListFilter {
  readonly label?: { readonly key: string; readonly value?: string };
  readonly states?: readonly SandboxState[];
  /** The `next` of the page before. */
  readonly after?: number;
  readonly limit: number;
}

export interface SnapshotFilter {
  readonly sandboxId?: string;
  readonly provider?: string;
  readonly label?: { readonly key: string; readonly value?: string };
  /** The `next` of the page before. */
  readonly after?: number;
  readonly limit: number;
}

/** A snapshot with how many sandboxes are being made from it. */
export type KnownSnapshot = SnapshotRow & { readonly usedBy: number };

export interface TakeOptions {
  readonly owner: string;
  readonly ttlMs: number;
}

/**
 * The durable state. Each call is one transaction. A write names the version that it was decided on, and under which
 * ticket if it has one, and changes nothing if either has moved on: then it answers `undefined`, and the caller reads
 * again. Every write computes anew when the sandbox is due (`due.ts`).
 */
export interface Store {
  /** Several servers may work on it: what others did shows only when one looks. */
  readonly isShared: boolean;
  /** The time that all deadlines are compared with: the database's own where several servers share it. */
  now(): Promise<number>;
  /** This installation's id, made on the first start. */
  installationId(): Promise<string>;
  /** Where the data of this installation is; `home` is kept if none is. */
  home(home: string): Promise<string>;
  moveHome(home: string): Promise<void>;

  /**
   * With a lease, the intent to launch is written in the same transaction, or nothing is: `rules` decide. Fails with
   * `already_exists` if a sandbox has the name. The same idempotency key gives the first sandbox back.
   */
  insertSandbox(
    row: NewSandbox,
    options: { idempotencyKey?: string; entry: TimelineEntry; lease?: NewLease; rules?: AdmissionRules },
  ): Promise<Holding>;
  /**
   * Makes a spare, as it was read, the sandbox that `row` asks for: it keeps its id and its instance, and is new in every
   * other way. `undefined` if it has moved on, or if the key is another sandbox's. Throws what admission refuses.
   */
  give(
    spare: Holding,
    row: NewSandbox,
    options: { idempotencyKey?: string; entry: TimelineEntry; rules: AdmissionRules },
  ): Promise<Holding | undefined>;
  /** Those on this provider that are not gone, the oldest first. */
  spares(provider: string): Promise<Holding[]>;
  /** `undefined` if there is neither a sandbox nor an instance that is not gone. */
  ledger(sandboxId: string): Promise<Ledger | undefined>;
  holding(sandboxId: string): Promise<Holding | undefined>;
  /** By id or by name; no spare. */
  find(idOrName: string): Promise<Holding | undefined>;
  /** In order of creation, without spares. `next` is given if there may be more. */
  list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }>;
  /** The latest one under this id or name. */
  tombstone(idOrName: string): Promise<Tombstone | undefined>;

  /**
   * Writes the intent to launch: the next generation and fence, if `rules` find room. `undefined` if the sandbox moved
   * on, has an instance, or has the disk of an ephemeral one left. Throws what admission refuses.
   */
  reserve(before: Holding, lease: NewLease, rules: AdmissionRules): Promise<Holding | undefined>;
  /** What is found under an id that nothing is known of is saved with an empty ledger of version 0 as `before`. */
  save(before: Ledger, change: Change, ticket?: Ticket): Promise<Ledger | undefined>;
  /**
   * Ends a sandbox that has neither instance nor disk any more: its tombstone and its removal are one transaction.
   * A debt outlives it.
   */
  bury(before: Holding, options: { keepUntil: number; ticket?: Ticket }): Promise<boolean>;

  /** The right to work on this one now; `undefined` while another server has it. */
  ticket(sandboxId: string, options: TakeOptions): Promise<Ticket | undefined>;
  /** Those that are due and that nobody works on, the longest overdue first; none of `except`'s providers. */
  takeDue(options: TakeOptions & { limit: number; except: readonly string[] }): Promise<Ticket[]>;
  /** The same right for longer; `undefined` if it was lost. */
  renew(ticket: Ticket): Promise<Ticket | undefined>;
  release(ticket: Ticket): Promise<void>;
  /**
   * When the next sandbox or job is due, and not one of `except`'s providers. What somebody has a ticket for counts
   * from that ticket's end.
   */
  nextDueAt(options: { except: readonly string[] }): Promise<number | undefined>;

  /** Makes sure that there is such a job. */
  addJob(name: string, dueAt: number): Promise<void>;
  takeJobs(options: TakeOptions): Promise<Job[]>;
  /** Only under its ticket. */
  finishJob(job: Job, next: { dueAt: number; memory: Record<string, unknown> }): Promise<void>;
  /** Brings a job forward. */
  hurryJob(name: string): Promise<void>;

  hosts(): Promise<Host[]>;
  /** Only what is named changes: another server may just have found something else out. Gives the whole row. */
  saveHost(provider: string, change: Partial<Omit<Host, "provider">>): Promise<Host>;
  /**
   * Nobody was there between these times, or the clock was set from one to the other: what waits on this provider goes on
   * waiting for as long as it still had to, and `to` is when somebody was last there. Gives all that it moved;
   * `undefined`, and nothing is, if `from` is not when somebody was last there: another server has given it back.
   */
  giveBack(provider: string, unseen: { from: number; to: number }): Promise<Ledger[] | undefined>;

  /** Every sandbox id with a deadline: an instance that is not gone, a deletion, a turn. */
  unsettled(): Promise<string[]>;
  /** All leases that are not gone, and those that are but not forgotten, of one provider: what a sweep compares with. */
  leasesOf(provider: string): Promise<Lease[]>;
  /** Which of these sandboxes exist, by id, with their generations and whether they may have a disk. */
  sandboxesAmong(
    ids: readonly string[],
  ): Promise<Map<string, Pick<SandboxRow, "generation" | "fence" | "hasDisk" | "desired">>>;
  tombstonesAmong(ids: readonly string[]): Promise<Set<string>>;
  /** For metrics: the database counts, so that nothing is read row by row. */
  census(): Promise<Census>;
  /** Leases page by page, for people. */
  leases(options: { after?: string; limit: number }): Promise<Lease[]>;

  /**
   * Puts right what should not be wrong: rows whose due time is not what their deadlines say. Forgets what is old:
   * expired tombstones with their timelines, evidence of long ago, and the oldest of very long timelines. It is the one
   * call of several transactions, each a page; a call does some pages, and the next one goes on from there.
   */
  audit(options: {
    keepGoneMs: number;
    keepEntries: number;
  }): Promise<{ repaired: string[]; forgotten: number }>;

  timeline(sandboxId: string, options: { since: number; limit: number }): Promise<RecordedEntry[]>;

  /** The intent to make one. `already_exists` if another has the name; the same key gives the first one back. */
  insertSnapshot(row: SnapshotRow, options: { idempotencyKey?: string }): Promise<KnownSnapshot>;
  /** By id or by name. */
  snapshot(idOrName: string): Promise<KnownSnapshot | undefined>;
  /** In order of creation. `next` is given if there may be more. */
  snapshots(filter: SnapshotFilter): Promise<{ snapshots: KnownSnapshot[]; next?: number }>;
  /** `undefined` if it has moved on. */
  saveSnapshot(
    before: SnapshotRow,
    change: Partial<Omit<SnapshotRow, "id" | "version">>,
  ): Promise<KnownSnapshot | undefined>;
  /** Only one that is being deleted and that nothing is made from; `false` if it has moved on. */
  forgetSnapshot(before: SnapshotRow): Promise<boolean>;
  close(): Promise<void>;
}
