import type { InstanceRef } from "@holdfast/core";
import type { Lifecycle } from "../packages/server/src/lifecycle/lifecycle.ts";
import { Book } from "./book.ts";
import type { Coverage } from "./coverage.ts";
import { type FaultPlan, Faults } from "./faults.ts";
import { History, type Scene } from "./invariants/scene.ts";
import { Witness } from "./invariants/witness.ts";
import { Judge } from "./judge.ts";
import { ConnectionLost, Replica, type ReplicaTraits } from "./replica.ts";
import { Rng } from "./rng.ts";
import { Scheduler } from "./scheduler.ts";
import { START_MS } from "./start-time.ts";
import type { Trace } from "./trace.ts";
import { Wire } from "./wire.ts";
import { Backend, type BackendKind, type SimInstance } from "./world/backend.ts";
import { SimDatabase } from "./world/database.ts";
import type { SimLink } from "./world/door.ts";
import { settled } from "./world/store-port.ts";

export interface UniverseOptions {
  readonly seed: number;
  readonly plan: FaultPlan;
  readonly backends: readonly BackendKind[];
  readonly replicas: readonly ReplicaTraits[];
  readonly slots: number | null;
  /** How many instances a server may launch ahead. */
  readonly spares: number;
  readonly trace: Trace;
  readonly coverage: Coverage;
  readonly showsLogs: boolean;
  /** For a search through all orders: which of so many is next. */
  readonly choose?: (count: number) => number;
}

/** One run's whole world: servers, store, backends, keepers, and everybody who watches them. */
export class Universe {
  readonly rng: Rng;
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly judge = new Judge();
  readonly book = new Book();
  readonly history = new History();
  readonly backends: ReadonlyMap<string, Backend>;
  readonly database: SimDatabase;
  readonly replicas: readonly Replica[];
  readonly witness: Witness;
  readonly coverage: Coverage;
  readonly installationId: string;
  /** What clients wait for. */
  readonly waiting = new Set<string>();
  /** The store as it was at some time. */
  backup: Uint8Array | undefined;
  /** Nothing goes wrong any more, and nobody wants anything new. */
  isHealed = false;
  /** How late timers may be. */
  timerGrainMs = 0;
  readonly #trace: Trace;
  #ids = 0;

  constructor(options: UniverseOptions) {
    const { seed, plan, trace, coverage, slots, spares, showsLogs } = options;
    this.rng = new Rng(seed);
    this.coverage = coverage;
    this.#trace = trace;
    this.scheduler = new Scheduler({ rng: this.rng, trace, choose: options.choose });
    this.faults = new Faults({ plan, rng: this.rng, coverage });
    const isShared = options.replicas.length > 1;
    this.database = new SimDatabase({ now: () => this.storeNow(), newId: () => this.newId("hf"), isShared });
    this.witness = new Witness(this.#scene());
    const { scheduler, rng, faults, witness } = this;
    const backends = options.backends.map(
      (kind) => new Backend({ ...kind, scheduler, rng, faults, events: witness }),
    );
    this.backends = new Map(backends.map((backend) => [backend.kind, backend]));
    const wire = new Wire({ scheduler, rng });
    const surroundings = {
      ...{ scheduler, rng, faults, wire, trace, witness, slots, spares, showsLogs },
      backends: this.backends,
      store: () => this.database.store,
      newId: (kind: string) => this.newId(kind),
      timerGrainMs: () => this.timerGrainMs,
      opens: () => {
        if (isShared) return;
        this.database.voidTickets();
        this.book.tickets.clear();
      },
    };
    this.replicas = options.replicas.map((traits, i) => new Replica(`server${i}`, traits, surroundings));
    // A backup of a store that was never used is none: every one has the installation's id.
    this.installationId = settled(this.database.store.installationId());
  }

  /** The database's own clock where servers share it; the machine's where there is one server. */
  storeNow(): number {
    const [only, another] = this.replicas ?? [];
    return only !== undefined && another === undefined ? only.wallTime() : START_MS + this.scheduler.now;
  }

  newId(kind: string): string {
    return `${kind}${++this.#ids}`;
  }

  /** One step, with everything judged. `false`: nothing happens before `until`, or an invariant is broken. */
  step(until: number): boolean {
    return this.scheduler.step(until) && this.judge.violation === undefined;
  }

  /** Steps until then, or until `isEnough`. */
  advance(ms: number, isEnough: () => boolean = () => false): void {
    const until = this.scheduler.now + ms;
    while (!isEnough() && this.step(until));
  }

  say(text: string): void {
    this.#trace.add(this.scheduler.now, text);
  }

  /** For a client: time passes for it, whatever becomes of the servers. */
  sleep(ms: number): Promise<void> {
    const { scheduler } = this;
    return new Promise((resolve) => {
      scheduler.park({ op: "a client goes on", due: scheduler.now + ms, run: resolve });
    });
  }

  /** A client's request, to any server that is up. */
  async ask<T>(what: string, work: (lifecycle: Lifecycle<SimLink>) => Promise<T>): Promise<T> {
    const up = this.replicas.filter(({ isUp }) => isUp);
    if (up.length === 0 || this.isHealed) throw new ConnectionLost("no server is up for it");
    const label = `${what} (${this.newId("ask")})`;
    this.waiting.add(label);
    try {
      return await this.rng.pick(up).ask(label, work);
    } finally {
      this.waiting.delete(label);
    }
  }

  find(instanceId: string): SimInstance | undefined {
    const all = [...this.backends.values()].flatMap(({ instances }) => [...instances.values()]);
    return all.find(({ ref }) => ref.instanceId === instanceId);
  }

  /** Instances of ours that exist, wherever. */
  existing(): { backend: Backend; ref: InstanceRef }[] {
    return [...this.backends.values()].flatMap((backend) =>
      [...backend.instances.values()]
        .filter(({ ref }) => ref.installationId === this.installationId)
        .map(({ ref }) => ({ backend, ref })),
    );
  }

  #scene(): Scene {
    const universe = this;
    return {
      scheduler: this.scheduler,
      book: this.book,
      judge: this.judge,
      coverage: this.coverage,
      history: this.history,
      get backends() {
        return universe.backends;
      },
      storeNow: () => this.storeNow(),
      installationId: () => this.installationId,
      isAlone: () => this.replicas.length === 1,
      unnoticedMs: () => (this.replicas.length === 1 ? (this.replicas[0]?.unnoticedMs ?? 0) : 0),
      wasClockSet: () => this.replicas.length === 1 && this.replicas.some(({ wasClockSet }) => wasClockSet),
      ownerOf: (actor) => this.replicas.find((replica) => replica.actor === actor)?.owner ?? "",
    };
  }
}
