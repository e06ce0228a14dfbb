import type { Lease } from "@holdfast/core";
import type { Lifecycle } from "../../packages/server/src/lifecycle/lifecycle.ts";
import { Coverage } from "../coverage.ts";
import type { Fault, FaultPlan } from "../faults.ts";
import type { Replica } from "../replica.ts";
import { Trace } from "../trace.ts";
import { Universe } from "../universe.ts";
import type { Backend, SimInstance } from "../world/backend.ts";
import type { SimLink } from "../world/door.ts";
import { settled } from "../world/store-port.ts";

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;

/** What became of a call that a client made. */
export interface Call<T> {
  state: "waiting" | "done" | "failed";
  value?: T;
  code?: string;
}

/** The simulated world with the faults of a script instead of those of a seed. Every invariant is watched here, too. */
export class Stage {
  readonly universe: Universe;
  readonly #trace = new Trace();

  constructor(
    options: {
      choose?: (count: number) => number;
      servers?: number;
      remote?: boolean;
      copies?: boolean;
      slots?: number;
      spares?: number;
      seed?: number;
      plan?: FaultPlan;
    } = {},
  ) {
    const { servers = 1, remote = false, copies = false, slots = null, spares = 0 } = options;
    const { seed = 1, plan = {} } = options;
    this.universe = new Universe({
      ...{ seed, plan, slots, spares },
      backends: [
        remote ? { kind: "remote", settleMs: 5 * MINUTE, copies } : { kind: "local", settleMs: 0, copies },
      ],
      replicas: Array.from({ length: servers }, () => ({ skewMs: 0, drift: 0 })),
      trace: this.#trace,
      coverage: new Coverage(),
      showsLogs: true,
      ...(options.choose !== undefined && { choose: options.choose }),
    });
    for (const replica of this.universe.replicas) replica.start();
    this.advance(SECOND);
  }

  get backend(): Backend {
    const [backend] = this.universe.backends.values();
    if (backend === undefined) throw new Error("there is no backend");
    return backend;
  }

  server(index = 0): Replica {
    const replica = this.universe.replicas[index];
    if (replica === undefined) throw new Error(`there is no server ${index}`);
    return replica;
  }

  /** From now on these faults happen, each as likely as said; 1 is always. */
  faults(plan: Partial<Record<Fault, number>>): void {
    this.universe.faults.become(plan);
  }

  /** A client asks, and does not wait. */
  ask<T>(work: (lifecycle: Lifecycle<SimLink>) => Promise<T>, server = this.server()): Call<T> {
    const call: Call<T> = { state: "waiting" };
    server.ask("scripted", work).then(
      (value) => Object.assign(call, { state: "done", value }),
      (error: { code?: string; message: string }) =>
        Object.assign(call, { state: "failed", code: error.code ?? error.message }),
    );
    return call;
  }

  /** Asks for the sandbox and makes it run. */
  launch(policy: Record<string, unknown> = {}, server = this.server()): Call<unknown> {
    return this.ask(async ({ sandboxes }) => {
      await sandboxes.ensure("box", { provider: this.backend.kind, ...policy });
      await sandboxes.use("box");
    }, server);
  }

  /** A sandbox that runs. */
  running(policy: Record<string, unknown> = {}): SimInstance {
    const call = this.launch(policy);
    this.until(() => call.state !== "waiting");
    const [instance] = this.backend.instances.values();
    if (call.state !== "done" || instance === undefined) throw new Error(`it does not run: ${call.code}`);
    return instance;
  }

  advance(ms: number): void {
    this.universe.advance(ms);
    this.#assertNothingBroken();
  }

  /** Steps one by one until it is so; fails if it is not so after all that time. */
  until(isSo: () => boolean, ms = HOUR): void {
    this.universe.advance(ms, isSo);
    this.#assertNothingBroken();
    if (!isSo()) throw new Error(`it never came to that:\n${this.#trace.tail().join("\n")}`);
  }

  /** Every lease there ever was, in the order of their making. */
  leases(): Lease[] {
    return [...this.universe.book.leases.values()];
  }

  /** The last one. */
  lease(): Lease {
    const lease = this.leases().at(-1);
    if (lease === undefined) throw new Error("there is no lease");
    return lease;
  }

  phase(): string | undefined {
    return this.leases().at(-1)?.phase;
  }

  /** That fault strikes once, as soon as it can. */
  once(fault: Fault): void {
    const struck = () => this.universe.coverage.counts()[`fault ${fault}`] ?? 0;
    const before = struck();
    this.faults({ [fault]: 1 });
    this.until(() => struck() > before);
    this.faults({});
  }

  names(): string[] {
    return [...this.backend.instances.keys()];
  }

  /** How often a backend was asked for it since the beginning. */
  calls(op: string): number {
    return this.universe.witness.rates.calls.get(`${this.backend.kind} ${op}`) ?? 0;
  }

  /** The phase of each snapshot that there is a record of. */
  snapshots(): string[] {
    const { snapshots } = settled(this.universe.database.store.snapshots({ limit: 1000 }));
    return snapshots.map(({ phase }) => phase);
  }

  timeline(sandboxId: string): string[] {
    const entries = settled(this.universe.database.store.timeline(sandboxId, { since: 0, limit: 1000 }));
    return entries.map(({ type }) => type);
  }

  #assertNothingBroken(): void {
    const { violation } = this.universe.judge;
    if (violation !== undefined)
      throw new Error(`${violation.invariant}: ${violation.what}\n${this.#trace.tail().join("\n")}`);
  }
}
