import type {
  Capacity,
  Census,
  Clock,
  Holding,
  KeeperControl,
  KeeperDoor,
  Lease,
  Provider,
  Store,
} from "@holdfast/core";
import type { Amount, ProviderInfo, SweepReport, Why } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { Absence } from "./absence.ts";
import { Bell, withBell } from "./bell.ts";
import { BoundToServer } from "./bound-to-server.ts";
import { Changes } from "./changes.ts";
import { ClaimDesk } from "./claim-desk.ts";
import { within } from "./deadline.ts";
import { messageOf, providerOf, refOf } from "./effects.ts";
import { Forks } from "./forks.ts";
import { Hosts } from "./hosts.ts";
import { Jobs } from "./jobs.ts";
import { Keepers } from "./keepers.ts";
import { Lanes } from "./lanes.ts";
import type { NewId } from "./new-lease.ts";
import { Ports } from "./ports.ts";
import { Queue } from "./queue.ts";
import { Reconciler } from "./reconciler.ts";
import { Room, type RoomConfig } from "./room.ts";
import { Sandboxes } from "./sandboxes.ts";
import { SnapshotArchives } from "./snapshot-archives.ts";
import { SnapshotTender } from "./snapshot-tender.ts";
import { Snapshots } from "./snapshots.ts";
import { Spares } from "./spares.ts";
import { Sweeper } from "./sweeper.ts";
import { Turns } from "./turns.ts";
import type { Around } from "./waker.ts";
import { Watcher } from "./watcher.ts";
import { activityOf, explain } from "./why.ts";

/** Calls of one backend at a time: enough to be quick, few enough not to drown the machine that it is on. */
const CALLS_AT_A_TIME = 32;
/** One look, because somebody said that something has changed. */
const LOOK_MS = 20_000;

export interface LifecycleConfig extends RoomConfig {
  readonly defaultProvider: string;
  /** Why it is that one, where that needs to be said. */
  readonly defaultBecause?: string | undefined;
  /** A keeper that is busy and has no server ends after this much time. */
  readonly orphanLimitSeconds: number;
  /** How many instances may be launched ahead. */
  readonly spares: number;
}

export interface LifecycleDeps<Link extends KeeperControl> {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly door: KeeperDoor<Link>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: NewId;
  readonly log: Log;
  readonly config: LifecycleConfig;
  /** This server, among those that share the store. */
  readonly owner: string;
  readonly around?: Around | undefined;
}

/** What is there, for whoever watches the server. */
export interface Inventory {
  readonly census: Census;
  readonly providers: readonly {
    readonly provider: string;
    /** It can be reached, and takes new instances. */
    readonly isUp: boolean;
    readonly slots: number | null;
    /** Absent if it cannot be measured. */
    readonly capacity?: Capacity;
  }[];
  /** How long ago the first thing was due that nobody has done. */
  readonly dueLagMs: number;
}

/** One server's whole part in the lives of sandboxes. All it touches comes in through its dependencies. */
export class Lifecycle<Link extends KeeperControl> {
  readonly sandboxes: Sandboxes<Link>;
  readonly turns: Turns;
  readonly ports: Ports<Link>;
  readonly claims: ClaimDesk;
  readonly snapshots: Snapshots;
  readonly archives: SnapshotArchives;
  readonly forks: Forks;
  readonly changes: Changes;
  readonly reconciler: Reconciler;
  readonly #deps: LifecycleDeps<Link>;
  readonly #keepers: Keepers<Link>;
  readonly #hosts: Hosts;
  readonly #absence: Absence;
  readonly #sweeper: Sweeper;
  readonly #room: Room;
  readonly #jobs: Jobs;
  readonly #bound: BoundToServer;
  readonly #spares: Spares;
  readonly #watcher: Watcher;
  readonly #closing = new AbortController();

  constructor(deps: LifecycleDeps<Link>) {
    const { providers, clock, random, log, config, newId, owner } = deps;
    const bell = new Bell();
    const ringing = withBell(deps.store, bell);
    const keepers = new Keepers(deps.door);
    const hosts = new Hosts({ store: ringing, random, log });
    const absence = new Absence({ store: ringing, providers, hosts, log });
    const store = absence.watched(ringing);
    const parts = { store, providers, keepers, hosts, clock, log };
    const kick = (sandboxId: string) => this.reconciler.kick(sandboxId);
    const sweeper = new Sweeper({ ...parts, kick });
    const room = new Room({ ...parts, sweeper, config });
    const snapshots = new Snapshots({ ...parts, room, newId, owner, closing: this.#closing.signal });
    const tender = new SnapshotTender({ ...parts, snapshots, owner });
    const jobs = new Jobs({ store, sweeper, tender, log });
    const lanes = new Lanes(CALLS_AT_A_TIME);
    const closing = this.#closing.signal;
    const { orphanLimitSeconds, defaultProvider } = config;
    const spares = new Spares({
      ...{ ...parts, newId, closing, orphanLimitSeconds, most: config.spares },
      ...{ room, kick },
      settle: (sandboxId) => this.reconciler.settle(sandboxId),
    });
    const queue = new Queue({ clock, bell, makeRoom: () => spares.makeRoom() });
    const reconciler = new Reconciler({
      ...parts,
      afterAbsence: () => absence.giveBack(),
      haveCopy: (holding) => snapshots.haveCopy(holding),
      random,
      orphanLimitSeconds,
      lanes,
      bell,
      jobs,
      owner,
      closing,
    });
    this.reconciler = reconciler;
    const get = (idOrName: string) => this.sandboxes.get(idOrName);
    const claims = new ClaimDesk({ store, get, keepers, clock, newId, kick });
    this.claims = claims;
    this.sandboxes = new Sandboxes({
      ...parts,
      defaultProvider,
      reconciler,
      room,
      queue,
      bell,
      newId,
      claims,
      spares,
      around: deps.around,
    });
    this.snapshots = snapshots;
    this.archives = new SnapshotArchives({ ...parts, snapshots, defaultProvider });
    this.forks = new Forks({ store, snapshots, sandboxes: this.sandboxes });
    this.changes = new Changes({ store, bell, clock, owner });
    this.turns = new Turns({ store, sandboxes: this.sandboxes, reconciler, newId });
    this.ports = new Ports({ store, sandboxes: this.sandboxes, newId });
    this.#deps = { ...deps, store };
    this.#keepers = keepers;
    this.#hosts = hosts;
    this.#absence = absence;
    this.#sweeper = sweeper;
    this.#room = room;
    this.#jobs = jobs;
    this.#bound = new BoundToServer({ store });
    this.#spares = spares;
    const look = (sandboxId: string) => this.look(sandboxId);
    this.#watcher = new Watcher({ ...parts, random, closing, look });
  }

  /** Looks at what is there, finds its sandboxes again, and from then on does what is due. */
  async start(): Promise<void> {
    const { providers } = this.#deps;
    await this.#hosts.read();
    await this.#jobs.add(providers.keys());
    // What an operator repaired shows at the next launch; until then it is believed.
    for (const provider of providers.keys()) await this.#hosts.reopen(provider);
    await this.#absence.giveBack();
    await this.#sweeper.first();
    await this.#bound.endLeft();
    this.reconciler.start();
    await this.reconciler.adopt();
    this.#watcher.start();
  }

  /** Something happened to its instance, by somebody's word: that is no evidence, and a reason to look. */
  async look(sandboxId: string): Promise<void> {
    const { store, clock } = this.#deps;
    const ledger = await store.ledger(sandboxId);
    if (ledger?.lease === undefined) return;
    const { lease } = ledger;
    const { instanceId, nextAttemptAt } = lease;
    this.#keepers.doubt(instanceId);
    if (this.#keepers.link(instanceId) !== undefined) {
      const provider = providerOf(lease, this.#deps);
      const seen = await within(clock, { ms: LOOK_MS }, (signal) => provider.observe(refOf(lease), signal));
      // A line of which nothing was heard may be one to a keeper that is frozen.
      if (seen.state === "running" && !seen.isPaused) return;
      this.#keepers.drop(instanceId);
    }
    // It waits for its next attempt to be reached: there is news of it now.
    if (lease.phase === "live" && nextAttemptAt !== null && nextAttemptAt > ledger.readAt)
      await store.save(ledger, { leases: { [instanceId]: { nextAttemptAt: ledger.readAt } } });
    await this.reconciler.settle(sandboxId);
  }

  /** Ends those that end with their server, and the spares. Before `stop`: it needs everything that the server can do. */
  async endBound({ ms }: { ms: number }): Promise<void> {
    const settle = (sandboxId: string) => this.reconciler.settle(sandboxId);
    await Promise.all([this.#bound.end({ settle, clock: this.#deps.clock, ms }), this.#spares.end()]);
  }

  /** Begins nothing more; what is under way is left for the next start. */
  stop(): void {
    this.#closing.abort();
  }

  /** Waits for what is under way, and lets go of every keeper. */
  async close(): Promise<void> {
    this.stop();
    await this.#spares.close();
    await this.reconciler.close();
    await this.#watcher.close();
    this.#keepers.close();
  }

  async why(idOrName: string): Promise<{ holding: Holding; why: Why }> {
    const holding = await this.sandboxes.get(idOrName);
    const { clock } = this.#deps;
    return { holding, why: explain(holding, await activityOf(holding, { keepers: this.#keepers, clock })) };
  }

  sweep(options: { dryRun: boolean }): Promise<SweepReport> {
    return this.#sweeper.sweep(options);
  }

  leases(options: { after?: string; limit: number }): Promise<Lease[]> {
    return this.#deps.store.leases(options);
  }

  async inventory(): Promise<Inventory> {
    const { store, providers, config } = this.#deps;
    await this.#hosts.read();
    const dueAt = await store.nextDueAt({ except: this.#hosts.unreachable() });
    return {
      census: await store.census(),
      providers: await Promise.all(
        [...providers.keys()].map(async (provider) => {
          const { nextProbeAt, closedBecause } = this.#hosts.get(provider);
          const capacity = await this.#room.measure(provider).catch(() => undefined);
          return {
            provider,
            isUp: nextProbeAt === null && closedBecause === null,
            slots: config.slots,
            ...(capacity !== undefined && { capacity }),
          };
        }),
      ),
      dueLagMs: dueAt === undefined ? 0 : Math.max(0, (await store.now()) - dueAt),
    };
  }

  async providers(): Promise<ProviderInfo[]> {
    await this.#hosts.read();
    return Promise.all([...this.#deps.providers.values()].map((provider) => this.#providerInfo(provider)));
  }

  async #providerInfo({ kind, capabilities, pause }: Provider): Promise<ProviderInfo> {
    const { nextProbeAt, lastError, closedBecause } = this.#hosts.get(kind);
    const state = nextProbeAt !== null ? "unreachable" : closedBecause !== null ? "closed" : "ok";
    const reason = nextProbeAt !== null ? lastError : closedBecause;
    const { networks, mounts, runtimes, ...rest } = capabilities;
    const { defaultProvider, defaultBecause } = this.#deps.config;
    return {
      provider: kind,
      isDefault: kind === defaultProvider,
      ...(kind === defaultProvider && defaultBecause !== undefined && { defaultBecause }),
      state,
      ...(reason !== null && { reason }),
      capabilities: {
        ...rest,
        networks: [...networks],
        mounts: [...mounts],
        runtimes: [...runtimes],
        pause: pause !== undefined,
      },
      capacity: await this.#capacity(kind),
    };
  }

  async #capacity(provider: string): Promise<ProviderInfo["capacity"]> {
    const held = (await this.#deps.store.leasesOf(provider)).filter(({ phase }) => phase !== "gone");
    const promised = held.reduce((sum, { reservation }) => sum + reservation.memoryBytes, 0);
    const slots: Amount = { used: held.length, total: this.#deps.config.slots };
    try {
      const { memoryBytes, disk } = await this.#room.measure(provider);
      const used = disk.sizeBytes - disk.freeBytes;
      return { slots, memory: { used: promised, total: memoryBytes }, disk: { used, total: disk.sizeBytes } };
    } catch (error) {
      const unknown = { unknown: messageOf(error) };
      return { slots, memory: unknown, disk: unknown };
    }
  }
}
