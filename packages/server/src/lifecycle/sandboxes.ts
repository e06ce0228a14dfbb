import {
  abandoned,
  beginsWithout,
  type Change,
  type Clock,
  type Holding,
  idleCheckAt,
  type KeeperControl,
  type Lease,
  type ListFilter,
  lossesIn,
  newSandbox,
  type Provider,
  pauseOrdered,
  policyOf,
  type RecordedEntry,
  type SandboxRow,
  type Store,
  savesFiles,
  stateOf,
} from "@holdfast/core";
import {
  type CreateSandbox,
  type EnsureSandbox,
  HoldfastError,
  type UpdateSandbox,
} from "@holdfast/protocol";
import type { Bell } from "./bell.ts";
import type { ClaimDesk } from "./claim-desk.ts";
import { checkClaim } from "./claims.ts";
import type { Keepers } from "./keepers.ts";
import { type NewId, newLease } from "./new-lease.ts";
import { pausing } from "./pause.ts";
import type { Queue } from "./queue.ts";
import type { Reconciler } from "./reconciler.ts";
import {
  type Asked,
  absent,
  checkBound,
  checkCopies,
  checkImage,
  checkMemory,
  checkPlace,
  deleting,
  noSuchProvider,
  notPaused,
  notRunning,
  parts,
  sameSpec,
} from "./refusals.ts";
import type { Room } from "./room.ts";
import type { Spares } from "./spares.ts";
import { checkSupported } from "./supported.ts";
import { withUse } from "./use.ts";
import { type Around, claimOf, type InUse, Waker } from "./waker.ts";

/** A follower of a quiet timeline is told that it is quiet, so that a proxy does not cut it off. */
const QUIET_MS = 15_000;
/** What another server wrote shows only when one looks. */
const LOOK_EVERY_MS = 500;

export interface SandboxesDeps<Link extends KeeperControl> {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly defaultProvider: string;
  readonly keepers: Keepers<Link>;
  readonly reconciler: Reconciler;
  readonly room: Room;
  readonly queue: Queue;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly claims: Pick<ClaimDesk, "lapsed">;
  readonly spares: Spares;
  readonly around?: Around | undefined;
}

/** What users do with sandboxes. It writes wishes into rows, lets the reconciler act, and reports what became true. */
export class Sandboxes<Link extends KeeperControl> {
  readonly #deps: SandboxesDeps<Link>;
  readonly #waker: Waker<Link>;

  constructor(deps: SandboxesDeps<Link>) {
    this.#deps = deps;
    this.#waker = new Waker({ ...deps, use: (idOrName, asked) => this.use(idOrName, asked) });
  }

  /** The sandbox, and the intent to launch it, are written when this returns, or neither is; `wake` makes it run. */
  async create(
    request: CreateSandbox,
    options: { idempotencyKey?: string; queueMs?: number } = {},
  ): Promise<Holding> {
    const { store, newId, spares } = this.#deps;
    const { name, ...rest } = request;
    const { spec, policy } = parts(rest);
    const { fromSnapshot = null } = spec;
    const snapshot = fromSnapshot === null ? undefined : await store.snapshot(fromSnapshot);
    const provider = this.#provider(spec.provider ?? snapshot?.provider);
    checkSupported(provider, spec);
    checkPlace(provider, snapshot);
    checkImage(spec, snapshot);
    checkCopies(provider, policy);
    checkBound(store, policy);
    const id = newId("sandbox");
    // One that is not there any more is for the store to refuse: what this very call made before may have been its last use.
    const asked = {
      ...{ id, name: name ?? id, provider: provider.kind, spec, policy: policyOf(policy) },
      ...{ labels: request.labels ?? {}, restoresFrom: snapshot?.id ?? fromSnapshot },
      diskHistory: beginsWithout(snapshot === undefined ? [] : lossesIn(snapshot)),
    };
    return spares.during(() => this.#insert(asked, provider, options));
  }

  /** Get or create. Safe between any number of callers: the name is unique in the store. */
  async ensure(
    name: string,
    request: EnsureSandbox,
    options: { queueMs?: number } = {},
  ): Promise<{ holding: Holding; created: boolean }> {
    const { store } = this.#deps;
    for (;;) {
      const found = await store.find(name);
      if (found !== undefined && found.sandbox.name === name)
        return { holding: sameSpec(found, request), created: false };
      try {
        return { holding: await this.create({ ...request, name }, options), created: true };
      } catch (error) {
        if (!(error instanceof HoldfastError && error.code === "already_exists")) throw error;
      }
    }
  }

  async get(idOrName: string): Promise<Holding> {
    return (await this.#deps.store.find(idOrName)) ?? (await this.#explainAbsence(idOrName));
  }

  list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }> {
    return this.#deps.store.list(filter);
  }

  /** Also of a sandbox that was deleted, as long as it is remembered. */
  async timeline(idOrName: string, options: { since: number; limit: number }): Promise<RecordedEntry[]> {
    return this.#deps.store.timeline(await this.#knownId(idOrName), options);
  }

  /** The timeline as it grows, until the signal aborts or the sandbox is gone for good. */
  async *follow(
    idOrName: string,
    options: { since: number; signal: AbortSignal },
  ): AsyncGenerator<RecordedEntry | "quiet"> {
    const { store, bell, clock } = this.#deps;
    const id = await this.#knownId(idOrName);
    const ms = store.isShared ? LOOK_EVERY_MS : QUIET_MS;
    let { since } = options;
    while (!options.signal.aborted) {
      // Before the look: what is written after it rings.
      const over = new AbortController();
      const rung = bell.wait(id, { ms, clock, signal: AbortSignal.any([options.signal, over.signal]) });
      const isGone = (await store.holding(id)) === undefined;
      const entries = await store.timeline(id, { since, limit: 100 });
      for (const entry of entries) yield entry;
      since = entries.at(-1)?.seq ?? since;
      if (entries.length > 0 || isGone) over.abort();
      else yield "quiet";
      await rung;
      if (entries.length === 0 && isGone) return;
    }
  }

  /**
   * The running sandbox and its keeper: woken if it must be, refused if it is not the one the caller remembers or if
   * another client has claimed it. Counts as use.
   */
  async use(idOrName: string, asked: Asked = {}): Promise<InUse<Link>> {
    const holding = await this.allowed(idOrName, asked);
    const used = (await withUse(holding, asked, this.#deps.store)) ?? holding;
    const connected = this.#waker.connected(used, asked);
    if (connected !== undefined) return connected;
    const woken = await this.#waker.wake(used, asked);
    // Only now is it known what its launch found of the disk.
    checkMemory(woken.holding, asked);
    return woken;
  }

  /** The sandbox, if the caller may change it: it is the one that is remembered, and nobody else has claimed it. */
  async allowed(idOrName: string, asked: Asked): Promise<Holding> {
    const holding = await this.#deps.claims.lapsed(await this.get(idOrName));
    checkMemory(holding, asked);
    checkClaim(holding, asked.claimToken);
    return holding;
  }

  /** The running sandbox and its keeper, or `wrong_state`: a look never wakes anything. */
  async look(idOrName: string): Promise<InUse<Link>> {
    return this.#running(await this.get(idOrName), {});
  }

  /**
   * For work on something that only a running instance can have: a process, a terminal. It counts as use, but starts
   * nothing: in a new instance there would be no such thing.
   */
  async useRunning(idOrName: string, asked: Asked): Promise<InUse<Link>> {
    const holding = await this.allowed(idOrName, asked);
    if (stateOf(holding) !== "running") throw notRunning(holding);
    return this.#running((await withUse(holding, asked, this.#deps.store)) ?? holding, asked);
  }

  /**
   * For the visitor of an exposed port, who has its address and no claim: whoever exposed it said whether a visit may
   * wake the sandbox. Counts as use.
   */
  async visit(holding: Holding, { wake }: { wake: boolean }): Promise<InUse<Link>> {
    if (!wake && stateOf(holding) !== "running") throw notRunning(holding);
    const used = (await withUse(holding, {}, this.#deps.store)) ?? holding;
    if (!wake) return this.#running(used, {});
    return this.#waker.connected(used, {}) ?? this.#waker.wake(used);
  }

  /** An explicit start also forgives earlier failures. */
  async start(idOrName: string, asked: Asked = {}): Promise<InUse<Link>> {
    const holding = await this.allowed(idOrName, asked);
    if (holding.sandbox.launchFailures === 0) return this.use(idOrName, asked);
    const forgiven = await this.#deps.store.save(holding, { sandbox: { launchFailures: 0, failure: null } });
    return this.#waker.wake((forgiven as Holding | undefined) ?? (await this.get(idOrName)), asked);
  }

  /** Makes it run, after `create` or `ensure`. */
  async wake(holding: Holding, asked: Asked = {}): Promise<InUse<Link>> {
    return this.#waker.connected(holding, asked) ?? this.#waker.wake(holding, asked);
  }

  begin(holding: Holding): Promise<Holding> {
    return this.#waker.begin(holding);
  }

  /** Counts as use, and wakes nothing. */
  async touch(idOrName: string, asked: Asked = {}): Promise<Holding> {
    const { keepers, store } = this.#deps;
    const holding = await this.allowed(idOrName, asked);
    const used = (await withUse(holding, asked, store)) ?? holding;
    const link = used.lease === undefined ? undefined : keepers.link(used.lease.instanceId);
    await link?.touch(claimOf(used, asked));
    return used;
  }

  /** Changes how long it lives. What is shorter now takes effect after the keeper was asked, as ever. */
  async update(idOrName: string, wanted: UpdateSandbox, asked: Asked = {}): Promise<Holding> {
    const { store, keepers, reconciler } = this.#deps;
    for (;;) {
      const holding = await this.allowed(idOrName, asked);
      const saved = await store.save(holding, updated(holding, wanted));
      if (saved === undefined) continue;
      // The keeper hears of its new policy when it is reached anew.
      if (saved.lease !== undefined) keepers.drop(saved.lease.instanceId);
      reconciler.kick(saved.sandboxId);
      return saved as Holding;
    }
  }

  /** Ends the instance and keeps the files. Done when there is evidence. */
  async stop(idOrName: string, asked: Asked = {}): Promise<Holding> {
    const holding = await this.#wish(() => this.allowed(idOrName, asked), { desired: "stopped" });
    await this.#deps.reconciler.settle(holding.sandboxId);
    return this.get(holding.sandboxId);
  }

  /** Freezes all its processes; what they have in memory stays. The next use resumes it. */
  async pause(idOrName: string, asked: Asked = {}): Promise<Holding> {
    const { store, reconciler } = this.#deps;
    for (;;) {
      const holding = await this.allowed(idOrName, asked);
      const { sandbox, lease } = holding;
      pausing(this.#provider(sandbox.provider));
      if (sandbox.desired === "deleted") throw deleting(sandbox);
      if (lease?.phase === "paused") return holding;
      if (lease === undefined || !canPause(lease)) throw notRunning(holding);
      if (lease.phase !== "pausing" && (await store.save(holding, pauseOrdered(lease))) === undefined)
        continue;
      await reconciler.settle(holding.sandboxId);
      const after = await this.get(holding.sandboxId);
      if (after.lease?.phase === "live" && after.lease.lastError !== null) throw notPaused(after);
      return after;
    }
  }

  /** Lets a paused one run on. One that runs is left as it is; nothing is started. */
  async resume(idOrName: string, asked: Asked = {}): Promise<Holding> {
    const holding = await this.allowed(idOrName, asked);
    const state = stateOf(holding);
    if (state !== "paused" && state !== "running") throw notRunning(holding);
    return (await this.#waker.wake(holding, asked)).holding;
  }

  /** Wants everything of it gone, and waits for the evidence, but no longer than asked; the work itself goes on. */
  async delete(
    idOrName: string,
    options: Asked & { mode: "graceful" | "force"; waitMs: number },
  ): Promise<"gone" | "deleting"> {
    const { store, clock, bell, reconciler } = this.#deps;
    const found = await store.find(idOrName);
    if (found === undefined && (await store.tombstone(idOrName)) !== undefined) return "gone";
    const allowed = async () => {
      const holding = await this.get(idOrName);
      checkClaim(holding, options.claimToken);
      return holding;
    };
    const { sandboxId } = await this.#wish(allowed, {
      desired: "deleted",
      deleteMode: options.mode,
      deleteReason: found?.sandbox.deleteReason ?? "delete_requested",
    });
    reconciler.kick(sandboxId);
    const until = clock.now() + options.waitMs;
    for (;;) {
      if ((await store.holding(sandboxId)) === undefined) return "gone";
      const left = until - clock.now();
      if (left <= 0) return "deleting";
      await bell.wait(sandboxId, { ms: Math.min(left, store.isShared ? LOOK_EVERY_MS : left), clock });
    }
  }

  /** An operator's word that an instance which cannot be proved gone no longer counts. It is hunted on. */
  async abandon(idOrName: string, { reason }: { reason: string }): Promise<Holding> {
    const { store, reconciler } = this.#deps;
    for (;;) {
      const holding = await this.get(idOrName);
      const saved = await store.save(holding, abandoned(holding, { reason, now: holding.readAt }));
      if (saved === undefined) continue;
      reconciler.kick(holding.sandboxId);
      return saved as Holding;
    }
  }

  /** A spare that waits for just this, or a new one. */
  #insert(
    asked: Parameters<typeof newSandbox>[0],
    { kind }: Provider,
    options: { idempotencyKey?: string; queueMs?: number },
  ): Promise<Holding> {
    const { store, room, queue, spares } = this.#deps;
    const key = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey };
    return queue.run(options.queueMs ?? 0, async () => {
      const row = newSandbox(asked, await store.now());
      const rules = await room.rules(kind);
      const made =
        (await spares.give(row, { ...key, rules })) ??
        (await store.insertSandbox(row, {
          ...{ ...key, rules },
          entry: { type: "created", detail: { name: row.name, provider: kind } },
          lease: await newLease(row, row.createdAt, this.#deps),
        }));
      spares.want(row);
      return made;
    });
  }

  async #running(holding: Holding, asked: Asked): Promise<InUse<Link>> {
    const inUse = await this.#waker.reach(holding, asked);
    if (inUse !== undefined) return inUse;
    throw notRunning(await this.get(holding.sandboxId));
  }

  /** `allowed` reads it and refuses who may not; asked before every attempt to write, so that no claim comes between. */
  async #wish(allowed: () => Promise<Holding>, wish: Partial<SandboxRow>): Promise<Holding> {
    for (;;) {
      const holding = await allowed();
      const { sandbox, lease, readAt } = holding;
      if (sandbox.desired === "deleted" && wish.desired !== "deleted") throw deleting(sandbox);
      // Force may be asked for later; it is never taken back.
      const deleteMode = sandbox.deleteMode === "force" ? "force" : (wish.deleteMode ?? "graceful");
      // Who wants it gone himself does not wait for the copy that the reaper owes him.
      const isWaived = sandbox.desired === "deleted" && savesFiles(sandbox);
      // A wish that is there already is not made again: its backoff goes on.
      if (sandbox.desired === wish.desired && sandbox.deleteMode === deleteMode && !isWaived) return holding;
      const isEscalated = deleteMode === "force" && sandbox.deleteMode !== "force";
      const saved = await this.#deps.store.save(holding, {
        sandbox: {
          ...wish,
          deleteMode,
          ...(isWaived && { deleteReason: "delete_requested", diskRetryAt: readAt }),
        },
        // A stop that becomes a forced one is tried at once, this one time; so is one that only waited for an owner.
        ...((isEscalated || waitsForOwner(lease)) &&
          typeof lease?.nextAttemptAt === "number" && {
            leases: { [lease.instanceId]: { nextAttemptAt: readAt } },
          }),
      });
      if (saved !== undefined) return saved as Holding;
    }
  }

  #provider(kind: string | undefined): Provider {
    const { providers, defaultProvider } = this.#deps;
    const provider = providers.get(kind ?? defaultProvider);
    if (provider !== undefined) return provider;
    throw noSuchProvider(kind, [...providers.keys()]);
  }

  async #knownId(idOrName: string): Promise<string> {
    const { store } = this.#deps;
    const id = (await store.find(idOrName))?.sandboxId ?? (await store.tombstone(idOrName))?.sandboxId;
    return id ?? this.#explainAbsence(idOrName);
  }

  async #explainAbsence(idOrName: string): Promise<never> {
    throw absent(idOrName, await this.#deps.store.tombstone(idOrName));
  }
}

function canPause({ phase }: Lease): boolean {
  return phase === "live" || phase === "pausing" || phase === "resuming";
}

/** From its admission to its end. */
function hasDeadlines({ phase }: Lease): boolean {
  return phase === "live" || phase === "pausing" || phase === "paused" || phase === "resuming";
}

/** One that was found, and is left alone in case somebody needs it: whoever ends its sandbox does not. */
function waitsForOwner(lease: Lease | undefined): boolean {
  return lease?.stopReason === "orphan" && lease.attempts === 0;
}

function updated({ sandbox, lease, readAt }: Holding, { labels, ...wanted }: UpdateSandbox): Change {
  const policy = policyOf({ ...sandbox.policy, ...wanted });
  const { maxLifetimeSeconds } = policy;
  const since = lease?.admittedAt ?? readAt;
  return {
    sandbox: { policy, ...(labels !== undefined && { labels }) },
    ...(lease !== undefined &&
      hasDeadlines(lease) && {
        leases: {
          [lease.instanceId]: {
            idleCheckAt: idleCheckAt(policy, sandbox.lastUsedAt),
            hardStopAt: maxLifetimeSeconds === null ? null : since + maxLifetimeSeconds * 1000,
          },
        },
      }),
    entries: [{ type: "updated", detail: { ...wanted, ...(labels !== undefined && { labels }) } }],
  };
}
