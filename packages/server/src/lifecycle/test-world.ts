import { basename } from "node:path";
import {
  defaultMinFreeDisk,
  type Holding,
  type InstanceRef,
  type KeeperControl,
  type Lease,
  type QuiesceAnswer,
} from "@holdfast/core";
import { AdmitRequest, type CreateSandbox, HoldfastError } from "@holdfast/protocol";
import { SqliteStore } from "@holdfast/store";
import { FakeProvider } from "@holdfast/testkit";
import { silentLog } from "../log.ts";
import { HandClock } from "./hand-clock.ts";
import { Lifecycle, type LifecycleConfig } from "./lifecycle.ts";

/** A backend, a database and a server whose time a test moves by hand. Nothing in it waits for real I/O. */
export class TestWorld {
  readonly clock = new HandClock();
  readonly provider = new FakeProvider({ now: () => this.clock.wall() });
  readonly store: SqliteStore;
  server: Lifecycle<KeeperControl>;
  readonly #config: Partial<LifecycleConfig>;
  readonly #watches = new Map<string, Set<() => void>>();
  #ids = 0;

  /** `sharedBy: "several"`: as if the database were elsewhere, and had other servers. */
  constructor(
    config: Partial<LifecycleConfig> = {},
    { sharedBy = "one" }: { sharedBy?: "one" | "several" } = {},
  ) {
    this.#config = config;
    this.store = new SqliteStore({
      ...{ path: ":memory:", newId: () => "ours", now: () => this.clock.wall() },
      keepTickets: sharedBy === "several",
    });
    const kill = this.provider.kill.bind(this.provider);
    this.provider.kill = (ref) => {
      kill(ref);
      this.cutLines(ref);
    };
    this.server = this.newServer();
  }

  /** One more, on the same store. */
  newServer(): Lifecycle<KeeperControl> {
    return new Lifecycle<KeeperControl>({
      store: this.store,
      providers: new Map([["fake", this.provider]]),
      door: ({ address }) => this.#link(basename(address.path, ".sock")),
      clock: this.clock,
      random: () => 0.5,
      newId: (kind) => `${kind}-${++this.#ids}`,
      log: silentLog,
      owner: `server-${++this.#ids}`,
      config: {
        defaultProvider: "fake",
        orphanLimitSeconds: 86_400,
        spares: 0,
        slots: null,
        tenantQuota: null,
        minFreeDisk: defaultMinFreeDisk,
        ...this.#config,
      },
    });
  }

  /** As keepers take it. */
  admit = async (state: ReturnType<FakeProvider["keeperOf"]>, request: AdmitRequest): Promise<void> => {
    state.admitted = request;
    state.isOwned ||= !request.spare;
  };

  async running(name: string, request: CreateSandbox = {}): Promise<Holding & { lease: Lease }> {
    const { sandboxes } = this.server;
    const { holding } = await sandboxes.wake(await sandboxes.create({ name, ...request }));
    return withLease(holding);
  }

  async phaseOf(idOrName: string): Promise<string | undefined> {
    return (await this.store.find(idOrName))?.lease?.phase;
  }

  async isGone(idOrName: string): Promise<boolean> {
    return (await this.store.find(idOrName)) === undefined;
  }

  /** Ends the lines to a keeper, which goes on. */
  cutLines({ instanceId }: Pick<InstanceRef, "instanceId">): void {
    const watches = this.#watches.get(instanceId) ?? [];
    this.#watches.delete(instanceId);
    for (const onEnd of watches) onEnd();
  }

  async close(): Promise<void> {
    await this.server.close();
    this.provider.close();
    await this.store.close();
  }

  #link(name: string): KeeperControl {
    const state = () => this.provider.keeperOf(this.#ref(name));
    return {
      info: async () => ({
        instanceId: this.#ref(name).instanceId,
        claimFence: state().claim?.fence ?? 0,
        isOwned: state().isOwned,
      }),
      admit: async (message) => this.admit(state(), AdmitRequest.parse(message)),
      watch: async ({ onEnd }) => this.#watch(this.#ref(name), onEnd),
      quiesce: async ({ lifetimeMs }): Promise<QuiesceAnswer> => {
        const { heldAwakeBy: because, idleForMs } = state();
        state().quiesced = because.length === 0 && idleForMs >= lifetimeMs;
        return state().quiesced ? { state: "quiesced" } : { state: "busy", because, idleForMs };
      },
      resume: async () => {
        state().quiesced = false;
      },
      touch: async () => state().touches++,
      activity: async () => state(),
      claimFence: async (claim) => {
        state().claim = claim;
      },
    };
  }

  #watch({ instanceId }: InstanceRef, onEnd: () => void): { close(): void } {
    const watches = this.#watches.get(instanceId) ?? new Set();
    this.#watches.set(instanceId, watches.add(onEnd));
    return { close: () => void watches.delete(onEnd) };
  }

  /** The fake calls its sockets by sandbox and generation. */
  #ref(name: string): InstanceRef {
    const ref = this.provider
      .refs()
      .find(({ sandboxId, generation }) => `${sandboxId}-${generation}` === name);
    if (ref === undefined) throw new HoldfastError("unavailable", `no keeper answers at ${name}`);
    return ref;
  }
}

function withLease(holding: Holding | undefined): Holding & { lease: Lease } {
  if (holding?.lease === undefined) throw new Error("it has no instance");
  return { ...holding, lease: holding.lease };
}
