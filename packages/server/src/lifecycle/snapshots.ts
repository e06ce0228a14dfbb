import {
  type Clock,
  type CopyOptions,
  type Holding,
  type KnownSnapshot,
  noteOf,
  type Provider,
  type SnapshotContent,
  type SnapshotFilter,
  type SnapshotNote,
  type SnapshotRef,
  type SnapshotRow,
  type SnapshotVault,
  type Store,
  stateOf,
  TENANT,
} from "@holdfast/core";
import { type CreateSnapshot, HoldfastError, type SnapshotOrigin } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { within } from "./deadline.ts";
import { messageOf, providerOf } from "./effects.ts";
import type { NewId } from "./new-lease.ts";
import { deleting, noSuchSnapshot } from "./refusals.ts";
import type { Room } from "./room.ts";
import { BUSY_MS, foundNothing, SnapshotWork } from "./snapshot-work.ts";

/** To list, or to remove: a large one takes more than one call, and what was removed stays removed. */
const CALL_MS = 40_000;
/** Long enough for somebody to miss them after a weekend. */
const KEEP_REAPED_SECONDS = 7 * 86_400;
/** How often to look whether another server is done. */
const LOOK_EVERY_MS = 100;

export interface SnapshotsDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly room: Room;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: NewId;
  /** This server, among those that share the store. */
  readonly owner: string;
  /** Aborted when the server shuts down: what is half made is removed by the next start. */
  readonly closing: AbortSignal;
}

export interface Making {
  readonly origin: SnapshotOrigin;
  readonly idempotencyKey?: string;
}

/** How a vault is asked for the content: from a disk, or from an archive. */
export type Fill = (
  vault: SnapshotVault,
  ref: SnapshotRef,
  note: SnapshotNote,
  options: CopyOptions,
) => Promise<SnapshotContent>;

/** Makes, keeps and removes copies of sandboxes' files. A row is there before anything is copied, and after all is gone. */
export class Snapshots {
  readonly #deps: SnapshotsDeps;
  readonly #working = new Map<string, Promise<void>>();
  readonly #held = new Map<string, number>();

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps;
  }

  /** Writes the intent and begins; `settled` waits for the end. */
  async begin(holding: Holding, wanted: CreateSnapshot, making: Making): Promise<KnownSnapshot> {
    const { sandbox } = holding;
    if (sandbox.desired === "deleted" && making.origin !== "reap") throw deleting(sandbox);
    if (!sandbox.hasDisk || stateOf(holding) === "creating") throw nothingThere(holding);
    const { id: sandboxId, provider, generation, spec } = sandbox;
    const fill: Fill = async (vault, ref, note, options) =>
      vault.make(ref, { installationId: ref.installationId, sandboxId }, note, options);
    return this.make({ ...wanted, provider, sandboxId, generation, spec }, making, fill);
  }

  /**
   * The copy that must be there before the reaper takes the files. Of one that failed, why is thrown, and the next call
   * begins anew: the files stay until it works. Where there are none, there is nothing to wait for.
   */
  async haveCopy(holding: Holding): Promise<boolean> {
    const { id, generation } = holding.sandbox;
    const name = `auto-${id}-g${generation}`;
    const found = await this.#deps.store.snapshot(name);
    if (found?.phase === "ready") return true;
    if (found?.phase === "failed") {
      await this.delete(found.id);
      if (foundNothing(found)) return true;
      throw new Error(`its files are not removed before they are copied: ${found.failure}`);
    }
    if (found === undefined)
      await this.begin(holding, { name, expiresInSeconds: KEEP_REAPED_SECONDS }, { origin: "reap" });
    return false;
  }

  async make(
    wanted: CreateSnapshot & Pick<SnapshotRow, "provider" | "sandboxId" | "generation" | "spec">,
    { origin, idempotencyKey }: Making,
    fill: Fill,
  ): Promise<KnownSnapshot> {
    const { store, newId, room } = this.#deps;
    const vault = this.#vault(wanted.provider);
    const roomBytes = await room.spareBytes(wanted.provider);
    if (wanted.name !== undefined) await this.#clearFailed(wanted.name);
    const row = await this.#row(newId("snapshot"), wanted, origin);
    const known = await store.insertSnapshot(row, idempotencyKey === undefined ? {} : { idempotencyKey });
    if (known.id === row.id) this.#work(known, { vault, roomBytes, fill });
    return known;
  }

  async #row(
    id: string,
    wanted: CreateSnapshot & Pick<SnapshotRow, "provider" | "sandboxId" | "generation" | "spec">,
    origin: SnapshotOrigin,
  ): Promise<SnapshotRow> {
    const { store, owner } = this.#deps;
    const now = await store.now();
    const { name = id, labels = {}, expiresInSeconds, provider, sandboxId, generation, spec } = wanted;
    const expiresAt = expiresInSeconds === undefined ? null : now + expiresInSeconds * 1000;
    return {
      ...{ id, name, tenantId: TENANT, provider, sandboxId, generation, spec, labels, origin, expiresAt },
      ...{ phase: "making", parts: [], checksum: null, copiedBytes: 0, failure: null, createdAt: now },
      ...{ owner, busyUntil: now + BUSY_MS, version: 1 },
    };
  }

  #work(
    row: KnownSnapshot,
    { vault, roomBytes, fill }: { vault: SnapshotVault; roomBytes: number; fill: Fill },
  ): void {
    const work = new SnapshotWork({ ...this.#deps, row });
    const done = work
      .run(async (options) => {
        const ref = await this.#ref(row);
        // A fork's own is for this moment: nobody will export it.
        const copy = { ...options, checksum: row.origin !== "fork", roomBytes };
        return fill(vault, ref, noteOf(row), copy);
      })
      .catch((error: unknown) => {
        this.#deps.log.error("snapshot not written down", { snapshot: row.id, error: messageOf(error) });
      })
      .finally(() => this.#working.delete(row.id));
    this.#working.set(row.id, done);
  }

  /** Somebody makes or reads it, here or as far as another server has said. */
  isBusy({ id, busyUntil }: SnapshotRow, now: number): boolean {
    if (this.#working.has(id) || this.#held.has(id)) return true;
    // Of a store that nobody shares, the others are dead.
    return this.#deps.store.isShared && busyUntil > now;
  }

  /** Somebody reads it: until the answer is called, it is not removed. */
  hold(id: string): () => void {
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    return () => {
      const left = (this.#held.get(id) ?? 0) - 1;
      if (left > 0) this.#held.set(id, left);
      else this.#held.delete(id);
    };
  }

  /** When it is made, or has failed. */
  async settled(id: string, signal?: AbortSignal): Promise<KnownSnapshot> {
    const { clock } = this.#deps;
    for (;;) {
      await this.#working.get(id);
      const row = await this.get(id);
      if (row.phase !== "making") return row;
      signal?.throwIfAborted();
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  /** The same, for who cannot go on without it. */
  async ready(id: string): Promise<KnownSnapshot> {
    const row = await this.settled(id);
    if (row.phase === "ready") return row;
    throw new HoldfastError(
      "internal",
      `snapshot ${row.name} could not be made: ${row.failure ?? row.phase}`,
      {
        hint: "what was copied is removed again; nothing of the sandbox was changed",
        details: { snapshotId: row.id },
      },
    );
  }

  async get(idOrName: string): Promise<KnownSnapshot> {
    const found = await this.#deps.store.snapshot(idOrName);
    if (found === undefined) throw noSuchSnapshot(idOrName);
    return found;
  }

  list(filter: SnapshotFilter): Promise<{ snapshots: KnownSnapshot[]; next?: number }> {
    return this.#deps.store.snapshots(filter);
  }

  /** `deleting`: a sandbox is still being made from it, or the removal did not work yet. It goes on by itself. */
  async delete(idOrName: string): Promise<"gone" | "deleting"> {
    const { store } = this.#deps;
    for (;;) {
      const row = await this.get(idOrName);
      // What is whole has no maker any more, only whoever wanted it.
      const order = { phase: "deleting", ...(row.phase === "ready" && { busyUntil: 0 }) } as const;
      const going = row.phase === "deleting" ? row : await store.saveSnapshot(row, order);
      if (going === undefined) continue;
      // Its maker, if there is one here, sees it within a moment and removes what it has.
      await this.#working.get(row.id);
      if (going.usedBy > 0 || this.isBusy(going, await store.now())) return "deleting";
      return (await this.remove(going)) ? "gone" : "deleting";
    }
  }

  /** Its record goes when there is evidence that nothing else is left. */
  async remove(row: SnapshotRow): Promise<boolean> {
    const { store, clock, log } = this.#deps;
    try {
      const ref = await this.#ref(row);
      const vault = this.#vault(row.provider);
      const seen = await within(clock, { ms: CALL_MS }, (signal) => vault.remove(ref, signal));
      if (seen.state === "present") throw new Error(seen.detail);
      const forgotten = await store.forgetSnapshot(row);
      if (forgotten) log.info("snapshot gone", { snapshot: row.id, evidence: seen.detail });
      return forgotten;
    } catch (error) {
      log.warn("snapshot not removed", { snapshot: row.id, error: messageOf(error) });
      await store.saveSnapshot(row, { failure: messageOf(error) });
      return false;
    }
  }

  /** A name that only says why something failed is free. */
  async #clearFailed(name: string): Promise<void> {
    const taken = await this.#deps.store.snapshot(name);
    if (taken?.phase === "failed") await this.delete(taken.id);
  }

  async #ref({ id }: Pick<SnapshotRow, "id">): Promise<SnapshotRef> {
    return { installationId: await this.#deps.store.installationId(), snapshotId: id };
  }

  #vault(provider: string): SnapshotVault {
    return vaultOf(provider, this.#deps);
  }
}

export function vaultOf(provider: string, deps: Pick<SnapshotsDeps, "providers">): SnapshotVault {
  const { snapshots } = providerOf({ provider }, deps);
  if (snapshots !== undefined) return snapshots;
  throw new HoldfastError("unsupported", `provider ${provider} cannot make snapshots`, {
    hint: "`holdfast providers` shows which can",
    started: "no",
  });
}

function nothingThere(holding: Holding): HoldfastError {
  const { sandbox } = holding;
  return new HoldfastError(
    "wrong_state",
    `sandbox ${sandbox.name} has no files yet: it is ${stateOf(holding)}`,
    { hint: "wait until it runs, or start it", started: "no" },
  );
}
