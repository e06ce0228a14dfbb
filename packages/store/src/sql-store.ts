import {
  type AdmissionRules,
  type Census,
  type Change,
  type Holding,
  type Host,
  isHolding,
  type Job,
  type KnownSnapshot,
  type Lease,
  type Ledger,
  type ListFilter,
  type NewLease,
  type NewSandbox,
  type RecordedEntry,
  type SandboxRow,
  type SnapshotFilter,
  type SnapshotRow,
  type Store,
  type TakeOptions,
  type Ticket,
  type TimelineEntry,
  type Tombstone,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { auditPage, forgetOld, type Keeping, repairForgotten } from "./auditing.ts";
import { census } from "./census.ts";
import type { Driver } from "./driver.ts";
import { Found } from "./found.ts";
import { giveBack, type Unseen } from "./giving-back.ts";
import * as hosts from "./hosts.ts";
import * as installations from "./installations.ts";
import * as jobs from "./jobs.ts";
import * as leases from "./leases.ts";
import { isNothing, readLedger } from "./ledgers.ts";
import { reserve, type Wish } from "./reserving.ts";
import * as sandboxes from "./sandboxes.ts";
import { save } from "./saving.ts";
import * as snapshots from "./snapshots.ts";
import * as tickets from "./tickets.ts";
import { timeline } from "./timelines.ts";
import * as tombstones from "./tombstones.ts";

/** Pages of one audit, which holds up whoever else asks for some 10 ms each. The next one goes on from there. */
const AUDIT_PAGES = 4;

/** The store, whatever database is under it. Each method is a transaction of the driver's; the modules say what is in it. */
export class SqlStore implements Store {
  readonly isShared: boolean;
  readonly #driver: Driver;
  readonly #newId: () => string;
  readonly #found = new Found();
  #auditedTo = "";

  constructor({ driver, newId }: { driver: Driver; newId: () => string }) {
    this.isShared = driver.isShared;
    this.#driver = driver;
    this.#newId = newId;
  }

  now(): Promise<number> {
    return this.#driver.read((tx) => tx.now());
  }

  installationId(): Promise<string> {
    return this.#driver.write((tx) => installations.installationId(tx, this.#newId));
  }

  async home(home: string): Promise<string> {
    await this.installationId();
    return this.#driver.write((tx) => installations.home(tx, home));
  }

  async moveHome(home: string): Promise<void> {
    await this.installationId();
    await this.#driver.write((tx) => installations.moveHome(tx, home));
  }

  insertSandbox(
    row: NewSandbox,
    options: { idempotencyKey?: string; entry: TimelineEntry; lease?: NewLease; rules?: AdmissionRules },
  ): Promise<Holding> {
    const { idempotencyKey, entry } = options;
    const wish = wishOf(options);
    return this.#driver.write((tx) => sandboxes.insertSandbox(tx, { row, idempotencyKey, entry, wish }));
  }

  async give(
    spare: Holding,
    row: NewSandbox,
    options: { idempotencyKey?: string; entry: TimelineEntry; rules: AdmissionRules },
  ): Promise<Holding | undefined> {
    const { idempotencyKey, entry, rules } = options;
    try {
      const giving = { spare, row, idempotencyKey, entry, rules };
      return await this.#driver.write((tx) => sandboxes.give(tx, giving));
    } catch (error) {
      if (error instanceof sandboxes.NotGiven) return undefined;
      throw error;
    }
  }

  spares(provider: string): Promise<Holding[]> {
    return this.#driver.read((tx) => sandboxes.spares(tx, provider));
  }

  async ledger(sandboxId: string): Promise<Ledger | undefined> {
    const { ledger } = await this.#driver.read((tx) => readLedger(tx, sandboxId));
    return isNothing(ledger) ? undefined : ledger;
  }

  async holding(sandboxId: string): Promise<Holding | undefined> {
    const ledger = await this.ledger(sandboxId);
    return ledger !== undefined && isHolding(ledger) ? ledger : undefined;
  }

  async find(idOrName: string): Promise<Holding | undefined> {
    const { writes, time } = this.#driver;
    const known = this.#found.get(idOrName, writes);
    if (known !== undefined) return { ...known, readAt: time ?? (await this.now()) };
    const found = await this.#driver.read((tx) => sandboxes.find(tx, idOrName));
    if (found !== undefined) this.#found.keep(idOrName, found, writes);
    return found;
  }

  list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }> {
    return this.#driver.read((tx) => sandboxes.list(tx, filter));
  }

  tombstone(idOrName: string): Promise<Tombstone | undefined> {
    return this.#driver.read((tx) => tombstones.tombstone(tx, idOrName));
  }

  async reserve(before: Holding, lease: NewLease, rules: AdmissionRules): Promise<Holding | undefined> {
    return this.#driver.write((tx) => reserve(tx, before, { lease, rules }));
  }

  save(before: Ledger, change: Change, ticket?: Ticket): Promise<Ledger | undefined> {
    return this.#driver.write((tx) => save(tx, { before, change, ticket }));
  }

  bury(before: Holding, { keepUntil, ticket }: { keepUntil: number; ticket?: Ticket }): Promise<boolean> {
    return this.#driver.write((tx) => tombstones.bury(tx, { before, keepUntil, ticket }));
  }

  ticket(sandboxId: string, options: TakeOptions): Promise<Ticket | undefined> {
    return this.#driver.write((tx) => tickets.ticket(tx, sandboxId, options));
  }

  takeDue(options: TakeOptions & { limit: number; except: readonly string[] }): Promise<Ticket[]> {
    return this.#driver.write((tx) => tickets.takeDue(tx, options));
  }

  renew(ticket: Ticket): Promise<Ticket | undefined> {
    return this.#driver.write((tx) => tickets.renew(tx, ticket));
  }

  release(ticket: Ticket): Promise<void> {
    return this.#driver.write((tx) => tickets.release(tx, ticket));
  }

  nextDueAt(options: { except: readonly string[] }): Promise<number | undefined> {
    return this.#driver.read((tx) => tickets.nextDueAt(tx, options));
  }

  addJob(name: string, dueAt: number): Promise<void> {
    return this.#driver.write((tx) => jobs.addJob(tx, name, dueAt));
  }

  takeJobs(options: TakeOptions): Promise<Job[]> {
    return this.#driver.write((tx) => jobs.takeJobs(tx, options));
  }

  finishJob(job: Job, next: { dueAt: number; memory: Record<string, unknown> }): Promise<void> {
    return this.#driver.write((tx) => jobs.finishJob(tx, job, next));
  }

  hurryJob(name: string): Promise<void> {
    return this.#driver.write((tx) => jobs.hurryJob(tx, name));
  }

  hosts(): Promise<Host[]> {
    return this.#driver.read((tx) => hosts.hosts(tx));
  }

  saveHost(provider: string, change: Partial<Omit<Host, "provider">>): Promise<Host> {
    return this.#driver.write((tx) => hosts.saveHost(tx, provider, change));
  }

  giveBack(provider: string, unseen: Unseen): Promise<Ledger[] | undefined> {
    return this.#driver.write((tx) => giveBack(tx, provider, unseen));
  }

  unsettled(): Promise<string[]> {
    return this.#driver.read((tx) => leases.unsettled(tx));
  }

  leasesOf(provider: string): Promise<Lease[]> {
    return this.#driver.read((tx) => leases.leasesOf(tx, provider));
  }

  sandboxesAmong(
    ids: readonly string[],
  ): Promise<Map<string, Pick<SandboxRow, "generation" | "fence" | "hasDisk" | "desired">>> {
    return this.#driver.read((tx) => sandboxes.sandboxesAmong(tx, ids));
  }

  tombstonesAmong(ids: readonly string[]): Promise<Set<string>> {
    return this.#driver.read((tx) => tombstones.tombstonesAmong(tx, ids));
  }

  census(): Promise<Census> {
    return this.#driver.read(census);
  }

  leases(options: { after?: string; limit: number }): Promise<Lease[]> {
    return this.#driver.read((tx) => leases.leases(tx, options));
  }

  async audit(keeping: Keeping): Promise<{ repaired: string[]; forgotten: number }> {
    const repaired = await this.#driver.write(repairForgotten);
    let forgotten = await this.#driver.write((tx) => forgetOld(tx, keeping));
    for (let i = 0; i < AUDIT_PAGES; i++) {
      const page = await this.#driver.write((tx) => auditPage(tx, this.#auditedTo, keeping));
      repaired.push(...page.repaired);
      forgotten += page.forgotten;
      this.#auditedTo = page.next ?? "";
      if (page.next === undefined) break;
    }
    return { repaired, forgotten };
  }

  timeline(sandboxId: string, options: { since: number; limit: number }): Promise<RecordedEntry[]> {
    return this.#driver.read((tx) => timeline(tx, sandboxId, options));
  }

  insertSnapshot(row: SnapshotRow, options: { idempotencyKey?: string }): Promise<KnownSnapshot> {
    return this.#driver.write((tx) => snapshots.insertSnapshot(tx, row, options.idempotencyKey));
  }

  snapshot(idOrName: string): Promise<KnownSnapshot | undefined> {
    return this.#driver.read((tx) => snapshots.snapshot(tx, idOrName));
  }

  snapshots(filter: SnapshotFilter): Promise<{ snapshots: KnownSnapshot[]; next?: number }> {
    return this.#driver.read((tx) => snapshots.snapshots(tx, filter));
  }

  saveSnapshot(
    before: SnapshotRow,
    change: Partial<Omit<SnapshotRow, "id" | "version">>,
  ): Promise<KnownSnapshot | undefined> {
    return this.#driver.write((tx) => snapshots.saveSnapshot(tx, before, change));
  }

  forgetSnapshot(before: SnapshotRow): Promise<boolean> {
    return this.#driver.write((tx) => snapshots.forgetSnapshot(tx, before));
  }

  close(): Promise<void> {
    return this.#driver.close();
  }
}

function wishOf({ lease, rules }: { lease?: NewLease; rules?: AdmissionRules }): Wish | undefined {
  if (lease === undefined) return undefined;
  if (rules === undefined)
    throw new HoldfastError("internal", "a lease was asked for without admission rules");
  return { lease, rules };
}
