import { type Clock, defaultMinFreeDisk, type Provider, type Store } from "@holdfast/core";
import { Lifecycle } from "../packages/server/src/lifecycle/lifecycle.ts";
import type { Faults } from "./faults.ts";
import type { Witness } from "./invariants/witness.ts";
import type { Rng } from "./rng.ts";
import { Actor, type Scheduler } from "./scheduler.ts";
import { START_MS } from "./start-time.ts";
import type { Trace } from "./trace.ts";
import type { Wire } from "./wire.ts";
import type { Backend } from "./world/backend.ts";
import { Door, type SimLink } from "./world/door.ts";
import { ProviderPort } from "./world/provider-port.ts";
import { storePort } from "./world/store-port.ts";

/** More than the workload ever wants, and still a bound to check. */
const QUOTA = 8;
/** Short, so that a run to the end of every keeper is. */
const ORPHAN_LIMIT_SECONDS = 3_600;

/** What a replica needs of the world around it. */
export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly rng: Rng;
  readonly faults: Faults;
  readonly wire: Wire;
  readonly trace: Trace;
  readonly witness: Witness;
  readonly backends: ReadonlyMap<string, Backend>;
  readonly store: () => Store;
  readonly newId: (kind: string) => string;
  readonly slots: number | null;
  readonly spares: number;
  readonly showsLogs: boolean;
  readonly timerGrainMs: () => number;
  /** A server opens the store. */
  readonly opens: () => void;
}

export interface ReplicaTraits {
  /** How wrong its wall clock is. */
  readonly skewMs: number;
  readonly drift: number;
}

/** As `absence.ts`: a server that was away for no longer acts as if it had been there. */
const UNNOTICED_MS = 180_000;

/** Lost with the server: nobody knows whether it was done. */
export class ConnectionLost extends Error {}

/** One server. It can be killed at any await, paused, cut off, and started again on the same store and world. */
export class Replica {
  readonly actor: Actor;
  /** Which of its lines are cut. */
  readonly cut = { store: false, provider: false, keepers: false };
  wasClockSet = false;
  /** How far its clock was set forward, in steps that look like a short absence. */
  unnoticedMs = 0;
  /** Nobody starts it again. */
  isGoneForEver = false;
  readonly #traits: ReplicaTraits;
  readonly #surroundings: Surroundings;
  readonly #clients = new Set<(error: Error) => void>();
  #jumpedMs = 0;
  #starts = 0;
  #running: { lifecycle: Lifecycle<SimLink>; door: Door } | undefined;

  constructor(name: string, traits: ReplicaTraits, surroundings: Surroundings) {
    this.actor = new Actor(name);
    this.#traits = traits;
    this.#surroundings = surroundings;
  }

  get isUp(): boolean {
    return this.#running !== undefined;
  }

  get lifecycle(): Lifecycle<SimLink> | undefined {
    return this.#running?.lifecycle;
  }

  /** The name under which it holds its tickets; a new one with each start. */
  get owner(): string {
    return `${this.actor.name}.${this.#starts}`;
  }

  /** What its machine's wall clock says: the store's time where it is alone. */
  wallTime(): number {
    return START_MS + Math.floor(this.#elapsed()) + this.#traits.skewMs + this.#jumpedMs;
  }

  /** Somebody sets its wall clock. */
  jump(ms: number): void {
    this.wasClockSet = true;
    if (ms > 0 && ms <= UNNOTICED_MS) this.unnoticedMs += ms;
    this.#jumpedMs += ms;
  }

  start(): void {
    if (this.#running !== undefined || this.isGoneForEver) return;
    this.#starts++;
    this.#surroundings.opens();
    const { scheduler, rng, newId, slots, spares } = this.#surroundings;
    const door = this.#door();
    const lifecycle = new Lifecycle<SimLink>({
      store: this.#store(),
      providers: this.#providers(),
      door: (line) => door.open(line),
      clock: this.#clock(),
      random: () => rng.next(),
      newId,
      log: this.#log(),
      owner: this.owner,
      config: {
        slots,
        tenantQuota: QUOTA,
        minFreeDisk: defaultMinFreeDisk,
        defaultProvider: "none",
        orphanLimitSeconds: ORPHAN_LIMIT_SECONDS,
        spares,
      },
    });
    this.#running = { lifecycle, door };
    const run = () => {
      lifecycle.start().catch((error: unknown) => this.#failToStart(error));
    };
    scheduler.park({ actor: this.actor, op: `${this.owner} starts`, due: scheduler.now, run });
  }

  /** As `serve` does: it says why and exits, and whoever supervises it starts it again. */
  #failToStart(error: unknown): void {
    const { scheduler } = this.#surroundings;
    const run = () => {
      this.kill();
      scheduler.park({
        op: `${this.actor.name} is tried again`,
        due: scheduler.now + 1_000,
        run: () => this.start(),
      });
    };
    scheduler.park({
      actor: this.actor,
      op: `${this.owner} cannot start: ${error}`,
      due: scheduler.now,
      run,
    });
  }

  /** SIGKILL. */
  kill(): void {
    if (this.#running === undefined) return;
    const { scheduler } = this.#surroundings;
    scheduler.kill(this.actor);
    this.#running.door.abandon();
    this.#running = undefined;
    for (const lose of this.#clients) {
      const run = () => lose(new ConnectionLost(`${this.actor.name} was killed`));
      scheduler.park({ op: "a client loses its server", due: scheduler.now, run });
    }
    this.#clients.clear();
  }

  /** Its network to the keepers is cut, or is whole again. */
  cutKeepers(): void {
    this.cut.keepers = true;
    this.#running?.door.cut();
  }

  /** A client's request reaches this server, which does `work` for it. */
  ask<T>(what: string, work: (lifecycle: Lifecycle<SimLink>) => Promise<T>): Promise<T> {
    const { scheduler } = this.#surroundings;
    const { lifecycle } = this;
    if (lifecycle === undefined) return Promise.reject(new ConnectionLost(`${this.actor.name} is down`));
    return new Promise<T>((resolve, reject) => {
      this.#clients.add(reject);
      const done = () => this.#clients.delete(reject);
      const run = () => {
        work(lifecycle).finally(done).then(resolve, reject);
      };
      scheduler.park({
        actor: this.actor,
        op: `${this.actor.name} is asked: ${what}`,
        due: scheduler.now,
        run,
      });
    });
  }

  /** Nobody can set this one; it only runs a little fast or slow. */
  #elapsed(): number {
    return this.#surroundings.scheduler.now * (1 + this.#traits.drift);
  }

  #store(): Store {
    const { wire, faults, rng, witness, store } = this.#surroundings;
    return storePort({
      actor: this.actor,
      store,
      wire,
      faults,
      rng,
      witness,
      isCutOff: () => this.cut.store,
    });
  }

  #providers(): Map<string, Provider> {
    const { backends, scheduler, wire, faults, rng, witness } = this.#surroundings;
    const common = { actor: this.actor, scheduler, wire, faults, rng, witness };
    const phaseOf = (instanceId: string) => witness.phaseOf(instanceId);
    const isCutOff = () => this.cut.provider;
    const ports = [...backends.values()].map(
      (backend) => new ProviderPort({ ...common, backend, phaseOf, isCutOff }),
    );
    return new Map(ports.map((port) => [port.kind, port]));
  }

  #door(): Door {
    const { backends, scheduler, wire, faults, rng, witness } = this.#surroundings;
    const keeperAt = (path: string) => backends.get(path.slice(0, path.indexOf("/")))?.keeperAt(path);
    const phaseOf = (instanceId: string) => witness.phaseOf(instanceId);
    const isCutOff = () => this.cut.keepers;
    return new Door({
      actor: this.actor,
      scheduler,
      wire,
      faults,
      rng,
      witness,
      keeperAt,
      phaseOf,
      isCutOff,
    });
  }

  #clock(): Clock {
    const { scheduler } = this.#surroundings;
    const { actor } = this;
    return {
      now: () => this.#elapsed(),
      sleep: (ms, signal) => {
        if (signal?.aborted) return Promise.resolve();
        return new Promise((resolve) => {
          const due = this.#roundedUp(
            scheduler.now + Math.max(0, Math.ceil(ms / (1 + this.#traits.drift))),
            ms,
          );
          const entry = scheduler.park({ actor, op: `${actor.name} wakes`, due, run: () => wake() });
          const wake = () => {
            entry.cancelled = true;
            signal?.removeEventListener("abort", wake);
            resolve();
          };
          signal?.addEventListener("abort", wake);
        });
      },
    };
  }

  /** Timers may be late. Those of a second and more share their wake-ups, or an idle hour would be all polls. */
  #roundedUp(due: number, ms: number): number {
    const grainMs = this.#surroundings.timerGrainMs();
    return ms < 1_000 || grainMs === 0 ? due : Math.ceil(due / grainMs) * grainMs;
  }

  #log() {
    const { trace, scheduler, showsLogs } = this.#surroundings;
    const write = (message: string, fields?: Record<string, unknown>) => {
      if (showsLogs)
        trace.add(scheduler.now, `    ${this.actor.name}: ${message} ${JSON.stringify(fields ?? {})}`);
    };
    return { info: write, warn: write, error: write };
  }
}
