import type { Clock, Holding, ListFilter, Provider, RecordedEntry, SandboxRow, Store } from "@holdfast/core";
import type { KeeperLink } from "@holdfast/keeper-link";
import { type CreateSandbox, type EnsureSandbox, HoldfastError } from "@holdfast/protocol";
import { newInstanceId, newSandboxId, newSecret } from "./ids.ts";
import type { Keepers } from "./keepers.ts";
import type { Reconciler } from "./reconciler.ts";
import {
  absent,
  checkMemory,
  checkSupported,
  deleting,
  endedMeanwhile,
  launchFailed,
  noSuchProvider,
  notRunning,
  type Remembered,
  refuseHopeless,
  refuseStuck,
  sameSpec,
} from "./refusals.ts";

/** From the reservation to an admitted keeper. A local one takes 0.1 s; the rest is for a machine that is drowning. */
const STARTUP_DEADLINE_MS = 60_000;

export interface SandboxesDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly defaultProvider: string;
  readonly keepers: Keepers;
  readonly reconciler: Reconciler;
  readonly clock: Clock;
}

/** A sandbox that runs, and the line to its keeper. */
export interface InUse {
  readonly holding: Holding;
  readonly link: KeeperLink;
}

/** What users do with sandboxes. It writes wishes into rows, lets the reconciler act, and reports what became true. */
export class Sandboxes {
  readonly #deps: SandboxesDeps;

  constructor(deps: SandboxesDeps) {
    this.#deps = deps;
  }

  /** The row exists when this returns; `wake` makes it run. */
  async create(request: CreateSandbox, options: { idempotencyKey?: string } = {}): Promise<Holding> {
    const { name, labels, ...spec } = request;
    const provider = this.#provider(spec.provider);
    checkSupported(provider, spec);
    const id = newSandboxId();
    const row = {
      id,
      name: name ?? id,
      provider: provider.kind,
      spec,
      labels: labels ?? {},
      desired: "active" as const,
      deleteMode: "graceful" as const,
      createdAt: this.#deps.clock.now(),
      launchFailures: 0,
      failure: null,
      lastDeath: null,
      dueAt: null,
    };
    return this.#deps.store.insertSandbox(row, {
      ...(options.idempotencyKey !== undefined && { idempotencyKey: options.idempotencyKey }),
      entry: { type: "created", detail: { name: row.name, provider: row.provider } },
    });
  }

  /** Get or create. Safe between any number of callers: the name is unique in the store. */
  async ensure(name: string, request: EnsureSandbox): Promise<{ holding: Holding; created: boolean }> {
    const found = await this.#deps.store.find(name);
    if (found !== undefined) return { holding: sameSpec(found, request), created: false };
    try {
      return { holding: await this.create({ ...request, name }), created: true };
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "already_exists")) throw error;
      return { holding: sameSpec(await this.get(name), request), created: false };
    }
  }

  /** Looks; never wakes. */
  async get(idOrName: string): Promise<Holding> {
    return (await this.#deps.store.find(idOrName)) ?? (await this.#explainAbsence(idOrName));
  }

  list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }> {
    return this.#deps.store.list(filter);
  }

  async timeline(idOrName: string, options: { since: number; limit: number }): Promise<RecordedEntry[]> {
    const { store } = this.#deps;
    const id = (await store.find(idOrName))?.sandbox.id ?? (await store.tombstone(idOrName))?.sandboxId;
    return id === undefined ? this.#explainAbsence(idOrName) : store.timeline(id, options);
  }

  /** The running sandbox and its keeper: woken if it must be, refused if it is not the one the caller remembers. */
  async use(idOrName: string, remembered: Remembered = {}): Promise<InUse> {
    const holding = await this.get(idOrName);
    checkMemory(holding, remembered);
    return this.#connected(holding) ?? this.wake(holding);
  }

  /** The running sandbox and its keeper, or `wrong_state`: a look never wakes anything. */
  async look(idOrName: string): Promise<InUse> {
    const holding = await this.get(idOrName);
    const connected = this.#connected(holding);
    if (connected !== undefined) return connected;
    if (holding.lease?.phase === "live") return this.wake(holding);
    throw notRunning(holding);
  }

  /** An explicit start also forgives earlier failures. */
  async start(idOrName: string): Promise<InUse> {
    const holding = await this.get(idOrName);
    if (holding.sandbox.launchFailures === 0) return this.use(idOrName);
    const forgiven = await this.#deps.store.save(holding, { sandbox: { launchFailures: 0, failure: null } });
    return this.wake(forgiven ?? (await this.get(idOrName)));
  }

  /** Promises that it will run: the intent is on the disk when this returns, and the next server knows of it, too. */
  async begin({ sandbox, lease }: Holding): Promise<Holding> {
    const begun = lease === undefined ? await this.#reserve(sandbox) : undefined;
    this.#deps.reconciler.kick(sandbox.id);
    return begun ?? this.get(sandbox.id);
  }

  /** Makes it run: waits for a stop that is under way, then launches. */
  async wake(first: Holding): Promise<InUse> {
    const { store, reconciler } = this.#deps;
    const { id } = first.sandbox;
    let holding: Holding | undefined = first;
    let reservedAfter: SandboxRow | undefined;
    while (holding !== undefined) {
      refuseHopeless(holding);
      if (holding.lease === undefined) {
        if (reservedAfter !== undefined) throw whyGone(holding, reservedAfter);
        if ((await this.#reserve(holding.sandbox)) !== undefined) reservedAfter = holding.sandbox;
      }
      await reconciler.settle(id);
      holding = await store.holding(id);
      const connected = holding === undefined ? undefined : this.#connected(holding);
      if (connected !== undefined) return connected;
      if (holding?.lease !== undefined) refuseStuck(holding);
    }
    return this.#explainAbsence(id);
  }

  /** Ends the instance and keeps the files. Done when there is evidence. */
  async stop(idOrName: string): Promise<Holding> {
    const holding = await this.#wish(idOrName, { desired: "stopped" });
    await this.#deps.reconciler.settle(holding.sandbox.id);
    return this.get(holding.sandbox.id);
  }

  /** Wants everything of it gone, and waits for the evidence, but no longer than asked; the work itself goes on. */
  async delete(
    idOrName: string,
    options: { mode: "graceful" | "force"; waitMs: number },
  ): Promise<"gone" | "deleting"> {
    const { store, clock } = this.#deps;
    if ((await store.find(idOrName)) === undefined && (await store.tombstone(idOrName)) !== undefined)
      return "gone";
    const { sandbox } = await this.#wish(idOrName, { desired: "deleted", deleteMode: options.mode });
    const until = clock.now() + options.waitMs;
    for (;;) {
      const left = Math.max(0, until - clock.now());
      await Promise.race([this.#deps.reconciler.settle(sandbox.id), clock.sleep(left)]);
      const now = await store.holding(sandbox.id);
      if (now === undefined) return "gone";
      if (clock.now() >= until) return "deleting";
      await clock.sleep(Math.min(until, nextLook(now, clock.now())) - clock.now());
    }
  }

  async #wish(idOrName: string, wish: Partial<SandboxRow>): Promise<Holding> {
    for (;;) {
      const holding = await this.get(idOrName);
      if (holding.sandbox.desired === "deleted" && wish.desired !== "deleted")
        throw deleting(holding.sandbox);
      // Force may be asked for later; it is never taken back.
      const deleteMode = holding.sandbox.deleteMode === "force" ? "force" : (wish.deleteMode ?? "graceful");
      // A wish that is there already is not made again: its backoff goes on.
      if (holding.sandbox.desired === wish.desired && holding.sandbox.deleteMode === deleteMode)
        return holding;
      const dueAt = this.#deps.clock.now();
      const saved = await this.#deps.store.save(holding, {
        sandbox: {
          ...wish,
          deleteMode,
          ...(holding.lease === undefined && wish.desired === "deleted" && { dueAt }),
        },
        // A wish is for now: what rests is woken, and what waits for its next attempt is tried at once.
        ...(holding.lease !== undefined && { lease: { dueAt, nextAttemptAt: null } }),
      });
      if (saved !== undefined) return saved;
    }
  }

  async #reserve(sandbox: SandboxRow): Promise<Holding | undefined> {
    const { store, clock } = this.#deps;
    const createdAt = clock.now();
    const lease = {
      instanceId: newInstanceId(),
      installationId: await store.installationId(),
      sandboxId: sandbox.id,
      provider: sandbox.provider,
      secret: newSecret(),
      createdAt,
      startupDeadlineAt: createdAt + STARTUP_DEADLINE_MS,
    };
    return store.reserve(sandbox, lease, {
      type: "reserved",
      detail: { generation: sandbox.generation + 1 },
    });
  }

  #connected(holding: Holding): InUse | undefined {
    const { lease, sandbox } = holding;
    if (lease?.phase !== "live" || sandbox.desired !== "active") return undefined;
    const link = this.#deps.keepers.link(lease.instanceId);
    return link === undefined ? undefined : { holding, link };
  }

  #provider(kind: string | undefined): Provider {
    const { providers, defaultProvider } = this.#deps;
    const provider = providers.get(kind ?? defaultProvider);
    if (provider !== undefined) return provider;
    throw noSuchProvider(kind, [...providers.keys()]);
  }

  async #explainAbsence(idOrName: string): Promise<never> {
    throw absent(idOrName, await this.#deps.store.tombstone(idOrName));
  }
}

/** `before`: as it was when this call launched it. */
function whyGone(holding: Holding, before: SandboxRow): HoldfastError {
  const failedAgain = holding.sandbox.launchFailures > before.launchFailures;
  return failedAgain ? launchFailed(holding.sandbox) : endedMeanwhile(holding);
}

/** When the reconciler will look again at what did not work the last time. */
function nextLook({ sandbox, lease }: Holding, now: number): number {
  return lease?.nextAttemptAt ?? sandbox.dueAt ?? now + 1_000;
}
