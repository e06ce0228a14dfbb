import {
  type Capabilities,
  type Capacity,
  type Check,
  type DiskObservation,
  type Found,
  type InstanceRef,
  type LaunchPlan,
  type Observation,
  type Provider,
  plainCapabilities,
  type SandboxRef,
  type SnapshotVault,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Faults } from "../faults.ts";
import type { Rng } from "../rng.ts";
import type { Actor, Scheduler } from "../scheduler.ts";
import type { Fate, Wire } from "../wire.ts";
import type { Backend } from "./backend.ts";
import { type VaultWitness, vaultPort } from "./vault.ts";

/** A call on this machine arrives at once, give or take what the scheduler makes of it. */
const ON_THIS_MACHINE_MS = 1_000;

/** What the invariants want to know of a server's calls. */
export interface ProviderWitness extends VaultWitness {
  /** The server sends it now. */
  sends(call: {
    actor: Actor;
    op: "launch" | "observe" | "stop" | "pause" | "resume" | "removeDisk";
    ref: InstanceRef | SandboxRef;
  }): void;
  /** A launch is on its way until then. */
  launchUnderWay(ref: InstanceRef, until: number): void;
  /** The server has the answer. */
  saw(actor: Actor, ref: InstanceRef, seen: Observation): void;
  /** A pause arrived after its sender had given up, or died. */
  pausedLate(ref: InstanceRef): void;
  /** An attempt to stop is over for the server, one way or the other. */
  stopEnded(ref: InstanceRef): void;
  listed(actor: Actor, kind: string, found: readonly Found[]): void;
  called(actor: Actor, kind: string, op: string): void;
}

interface Options {
  readonly backend: Backend;
  readonly actor: Actor;
  readonly scheduler: Scheduler;
  readonly wire: Wire;
  readonly faults: Faults;
  readonly rng: Rng;
  readonly witness: ProviderWitness;
  readonly phaseOf: (instanceId: string) => string | undefined;
  readonly isCutOff: () => boolean;
}

/** One server's line to one backend. */
export class ProviderPort implements Provider {
  readonly kind: string;
  readonly capabilities: Capabilities;
  readonly snapshots?: SnapshotVault;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.kind = options.backend.kind;
    if (options.backend.copies) this.snapshots = vaultPort(options);
    this.capabilities = { ...plainCapabilities, settleMs: options.backend.settleMs };
  }

  async probe(): Promise<readonly Check[]> {
    return [];
  }

  launch(ref: InstanceRef, plan: LaunchPlan, signal: AbortSignal): Promise<void> {
    const { backend, witness, actor, scheduler } = this.#options;
    witness.sends({ actor, op: "launch", ref });
    const fate = this.#launchFate(ref.instanceId);
    const promisedBy = scheduler.now + Math.max(backend.settleMs, ON_THIS_MACHINE_MS);
    if (fate.request !== "lost")
      witness.launchUnderWay(ref, Math.min(scheduler.now + fate.request.afterMs, promisedBy));
    let arrivals = 0;
    const apply = () => backend.launch(ref, plan, { isLate: ++arrivals > 1 || scheduler.now > promisedBy });
    return this.#send({ op: "launch", ref, fate, signal, apply });
  }

  async observe(ref: InstanceRef, signal: AbortSignal): Promise<Observation> {
    const { backend, witness, actor } = this.#options;
    witness.sends({ actor, op: "observe", ref });
    const fate = this.#fate(ref.instanceId);
    const seen = await this.#send({ op: "observe", ref, fate, signal, apply: () => backend.observe(ref) });
    witness.saw(actor, ref, seen);
    return seen;
  }

  async stop(ref: InstanceRef, mode: "graceful" | "force", signal: AbortSignal): Promise<Observation> {
    const { backend, witness, actor } = this.#options;
    witness.sends({ actor, op: "stop", ref });
    const fate = this.#fate(ref.instanceId);
    try {
      const seen = await this.#send({
        op: `stop ${mode}`,
        ref,
        fate,
        signal,
        apply: () => backend.stop(ref, mode),
      });
      witness.saw(actor, ref, seen);
      return seen;
    } finally {
      witness.stopEnded(ref);
    }
  }

  pause(ref: InstanceRef, signal: AbortSignal): Promise<Observation> {
    return this.#freezing("pause", ref, signal);
  }

  resume(ref: InstanceRef, signal: AbortSignal): Promise<Observation> {
    return this.#freezing("resume", ref, signal);
  }

  async #freezing(op: "pause" | "resume", ref: InstanceRef, signal: AbortSignal): Promise<Observation> {
    const { backend, witness, actor } = this.#options;
    const { epoch } = actor;
    let isWaitedFor = true;
    witness.sends({ actor, op, ref });
    const fate = this.#fate(ref.instanceId);
    const apply = () => {
      const seen = backend[op](ref);
      if (op === "pause" && (!isWaitedFor || actor.epoch !== epoch)) witness.pausedLate(ref);
      return seen;
    };
    try {
      const seen = await this.#send({ op, ref, fate, signal, apply });
      witness.saw(actor, ref, seen);
      return seen;
    } finally {
      isWaitedFor = false;
    }
  }

  removeDisk(ref: SandboxRef, signal: AbortSignal): Promise<DiskObservation> {
    const { backend, witness, actor } = this.#options;
    witness.sends({ actor, op: "removeDisk", ref });
    return this.#send({
      op: "removeDisk",
      ref,
      fate: this.#fate(),
      signal,
      apply: () => backend.removeDisk(ref),
    });
  }

  async discover(signal: AbortSignal): Promise<readonly Found[]> {
    const { backend, witness, actor } = this.#options;
    const found = await this.#send({
      op: "discover",
      fate: this.#fate(),
      signal,
      apply: () => backend.discover(),
    });
    witness.listed(actor, this.kind, found);
    return found;
  }

  capacity(signal: AbortSignal): Promise<Capacity> {
    const { backend } = this.#options;
    return this.#send({ op: "capacity", fate: this.#fate(), signal, apply: () => backend.capacity() });
  }

  #send<T>(call: {
    op: string;
    ref?: InstanceRef | SandboxRef;
    fate: Fate;
    signal: AbortSignal;
    apply: () => T;
  }): Promise<T> {
    const { actor, wire, witness, backend } = this.#options;
    const isRemote = backend.settleMs > 0;
    const isCutOff = this.#options.isCutOff();
    witness.called(actor, this.kind, call.op);
    const apply = () => {
      if (isCutOff)
        throw new HoldfastError("provider_unavailable", `${this.kind} cannot be reached from here`);
      const answer = call.apply();
      // On the same machine an answer is not lost on a wire, but what came after the work may fail.
      if (!isRemote && call.fate.reply === "lost")
        throw new HoldfastError("unavailable", "the answer was lost");
      return answer;
    };
    const plain = this.#options.wire.plainFate();
    const fate = isRemote ? call.fate : { ...call.fate, reply: plain.reply };
    const op = `${actor.name} ${call.op} ${call.ref === undefined ? this.kind : nameOf(call.ref)}`;
    return wire.send({ actor, op, fate, apply, signal: call.signal, lingers: isRemote });
  }

  #launchFate(instanceId: string): Fate {
    const { faults, rng, backend } = this.#options;
    const fate = this.#fate(instanceId);
    const isDelayed =
      backend.settleMs > 0 && faults.strikes("delayed_launch", this.#options.phaseOf(instanceId));
    return isDelayed ? { ...fate, request: { afterMs: rng.between(1_000, backend.settleMs - 1_000) } } : fate;
  }

  #fate(instanceId?: string): Fate {
    const { faults, rng, wire, backend } = this.#options;
    const phase = instanceId === undefined ? undefined : this.#options.phaseOf(instanceId);
    const plain = wire.plainFate();
    const reply = faults.strikes("lost_reply", phase) ? "lost" : plain.reply;
    if (faults.strikes("slow_call", phase))
      return { ...plain, reply: { afterMs: rng.between(1_000, 90_000) } };
    if (backend.settleMs === 0) return { ...plain, reply };
    if (faults.strikes("lost_request", phase)) return { request: "lost", reply: "lost" };
    if (faults.strikes("delayed_request", phase))
      return { request: { afterMs: rng.between(1_000, backend.settleMs - 1_000) }, reply };
    if (faults.strikes("very_late_request", phase))
      return { request: { afterMs: backend.settleMs + rng.between(1, 600_000) }, reply };
    if (faults.strikes("duplicated_request", phase))
      return { ...plain, reply, again: { afterMs: rng.between(0, backend.settleMs - 1_000) } };
    return { ...plain, reply };
  }
}

function nameOf(ref: InstanceRef | SandboxRef): string {
  return "instanceId" in ref ? `${ref.instanceId} (${ref.sandboxId} g${ref.generation})` : ref.sandboxId;
}
