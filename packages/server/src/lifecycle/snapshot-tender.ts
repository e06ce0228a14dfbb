import {
  type Clock,
  type FoundSnapshot,
  type KnownSnapshot,
  nextSnapshotStep,
  type Provider,
  type SnapshotRow,
  type SnapshotStep,
  type SnapshotVault,
  type Store,
  TENANT,
} from "@holdfast/core";
import type { Log } from "../log.ts";
import { within } from "./deadline.ts";
import { messageOf } from "./effects.ts";
import { KEEP_FAILED_MS, neededUntil } from "./snapshot-work.ts";
import { type Snapshots, vaultOf } from "./snapshots.ts";

/** To clear away what is half made, and to list. */
const CALL_MS = 40_000;

const TEND_EVERY_MS = 60_000;
/** One that waits until nothing is made from it any more is looked at so often, at first. */
const GOING_MS = 1_000;

export interface TenderDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly snapshots: Pick<Snapshots, "isBusy" | "remove">;
  readonly clock: Clock;
  readonly log: Log;
  readonly owner: string;
}

/** Compares the records of snapshots with what is there: ends what was begun, and what has had its time. */
export class SnapshotTender {
  readonly #deps: TenderDeps;
  readonly #goingSince = new Map<string, number>();

  constructor(deps: TenderDeps) {
    this.#deps = deps;
  }

  /** There is a backend that can hold any. */
  get hasWork(): boolean {
    return [...this.#deps.providers.values()].some(({ snapshots }) => snapshots !== undefined);
  }

  /** One pass over all that is known and all that is there; gives when the next one should be. */
  async tend(): Promise<number> {
    for (const [provider, { snapshots: vault }] of this.#deps.providers) {
      if (vault === undefined) continue;
      try {
        await this.#tend(provider, vault);
      } catch (error) {
        this.#deps.log.warn("snapshots could not be looked at", { provider, error: messageOf(error) });
      }
    }
    return this.#nextAt();
  }

  async #nextAt(): Promise<number> {
    const { store, providers } = this.#deps;
    const now = await store.now();
    const rows = (await Promise.all([...providers.keys()].map((provider) => this.#all(provider)))).flat();
    const going = new Set(rows.flatMap(({ id, phase }) => (phase === "deleting" ? [id] : [])));
    for (const id of this.#goingSince.keys()) if (!going.has(id)) this.#goingSince.delete(id);
    const times = rows.map((row) => Math.max(this.#lookAt(row, now), now + GOING_MS));
    return Math.min(now + TEND_EVERY_MS, ...times);
  }

  #lookAt({ id, phase, origin, busyUntil, expiresAt }: KnownSnapshot, now: number): number {
    if (phase === "deleting") {
      const since = this.#goingSince.get(id) ?? now;
      this.#goingSince.set(id, since);
      // What is made from it may take long, or be stopped before it began: ever more seldom.
      return now + (now - since) / 2;
    }
    if (origin === "fork" && busyUntil > now) return busyUntil;
    return expiresAt ?? Number.POSITIVE_INFINITY;
  }

  async #tend(provider: string, vault: SnapshotVault): Promise<void> {
    const { clock } = this.#deps;
    await within(clock, { ms: CALL_MS }, (signal) => vault.removeDrafts(signal));
    const rows = await this.#all(provider);
    // After the rows: what was ready then is in the list, unless somebody has just removed it.
    const found = await this.#list(vault);
    for (const row of rows) await this.#settle(row, found.get(row.id));
    const unknown = await this.#withoutRow(found);
    if (unknown.length === 0) return;
    // A record goes after its snapshot: what is still there now has none.
    const still = await this.#list(vault);
    for (const one of unknown) if (still.has(one.ref.snapshotId)) await this.#recover(provider, one);
  }

  async #list(vault: SnapshotVault): Promise<Map<string, FoundSnapshot>> {
    const { clock, store } = this.#deps;
    const installationId = await store.installationId();
    const found = await within(clock, { ms: CALL_MS }, (signal) => vault.discover(signal));
    const ours = found.filter(({ ref }) => ref.installationId === installationId);
    return new Map(ours.map((one) => [one.ref.snapshotId, one]));
  }

  async #withoutRow(found: ReadonlyMap<string, FoundSnapshot>): Promise<FoundSnapshot[]> {
    const unknown: FoundSnapshot[] = [];
    for (const one of found.values())
      if ((await this.#deps.store.snapshot(one.ref.snapshotId)) === undefined) unknown.push(one);
    return unknown;
  }

  async #settle(row: KnownSnapshot, found: FoundSnapshot | undefined): Promise<void> {
    const { store, snapshots } = this.#deps;
    const now = await store.now();
    const world = { found, usedBy: row.usedBy, abandoned: !snapshots.isBusy(row, now), now };
    await this.#carryOut(nextSnapshotStep(row, world), row);
  }

  async #carryOut(step: SnapshotStep, row: KnownSnapshot): Promise<void> {
    const { store, snapshots, log } = this.#deps;
    switch (step.do) {
      case "rest":
        return;
      case "conclude": {
        const busyUntil = neededUntil(row, await store.now());
        await store.saveSnapshot(row, { ...step.content, phase: "ready", failure: null, busyUntil });
        return;
      }
      case "fail": {
        const expiresAt = row.expiresAt ?? (await store.now()) + KEEP_FAILED_MS;
        await store.saveSnapshot(row, { phase: "failed", failure: step.because, expiresAt });
        log.warn("snapshot failed", { snapshot: row.id, because: step.because });
        return;
      }
      case "order-removal": {
        const going = await store.saveSnapshot(row, { phase: "deleting" });
        if (going?.usedBy === 0 && !snapshots.isBusy(going, await store.now())) await snapshots.remove(going);
        return;
      }
      case "remove":
        await snapshots.remove(row);
        return;
      default:
        return step satisfies never;
    }
  }

  /** One that the rows have forgotten: whoever owns what is in it can find it by its id. */
  async #recover(provider: string, { ref, note, content }: FoundSnapshot): Promise<void> {
    const { store, owner, log } = this.#deps;
    const { snapshotId: id } = ref;
    if (note.origin === "fork") {
      await vaultOf(provider, this.#deps).remove(ref, NEVER);
      return;
    }
    const name = (await store.snapshot(note.name)) === undefined ? note.name : id;
    const row: SnapshotRow = {
      ...note,
      ...content,
      ...{ id, name, provider, owner, tenantId: TENANT, phase: "ready", failure: null },
      ...{ copiedBytes: 0, busyUntil: 0, version: 1 },
    };
    await store.insertSnapshot(row, {});
    log.warn("a snapshot without a record was found", { snapshot: id, name });
  }

  async #all(provider: string): Promise<KnownSnapshot[]> {
    const rows: KnownSnapshot[] = [];
    let after: number | undefined;
    do {
      const filter = { provider, limit: 1000, ...(after !== undefined && { after }) };
      const { snapshots, next } = await this.#deps.store.snapshots(filter);
      rows.push(...snapshots);
      after = next;
    } while (after !== undefined);
    return rows;
  }
}

/** For what must be finished once it is begun. */
const NEVER = new AbortController().signal;
