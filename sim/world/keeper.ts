import type { InstanceRef, QuiesceAnswer } from "@holdfast/core";
import { type AdmitRequest, HoldfastError } from "@holdfast/protocol";
import type { Entry, Scheduler } from "../scheduler.ts";

/** A keeper that nobody admits ends by itself. */
const ADMISSION_MS = 60_000;
const QUIESCE_MS = 10_000;
/** The least time without a server after which an idle keeper ends. */
const LEAST_ORPHAN_MS = 600_000;
/** What is said to a frozen keeper waits in its socket, and is heard so long after it runs again, at most. */
const BUFFERED_MS = 30_000;

export interface KeeperEvents {
  admitted(keeper: SimKeeper, request: AdmitRequest): void;
  /** It begins to work for this caller. */
  accepts(keeper: SimKeeper, command: { commandId: string; fence: number }): void;
  /** Work was done; it is on the disk. */
  worked(keeper: SimKeeper, commandId: string): void;
  /** It ends by itself. */
  exits(keeper: SimKeeper, because: string): void;
}

export interface KeeperTraits {
  /** The process is there, and that is all. */
  readonly hangs: boolean;
  /** Its clock runs this much faster, as a share. */
  readonly drift: number;
}

interface Command {
  readonly commandId: string;
  state: "running" | "done" | "lost";
}

/** The other end of a `watch`. */
export interface Contact {
  readonly onEnd: () => void;
}

/** A keeper as its own small state machine. It counts the time that it really ran, by its own clock. */
export class SimKeeper {
  readonly ref: InstanceRef;
  readonly secret: string;
  readonly traits: KeeperTraits;
  readonly contacts = new Set<Contact>();
  readonly #commands = new Map<string, Command>();
  readonly #scheduler: Scheduler;
  readonly #events: KeeperEvents;
  readonly #startedAt: number;
  #pausedAt: number | undefined;
  #pausedMs = 0;
  #pausedUntil = 0;
  #isFrozen = false;
  #timer: Entry | undefined;
  #policy: AdmitRequest | undefined;
  #isOwned = false;
  #fence = 0;
  #claim = { fence: 0, required: false };
  #lastUse = 0;
  #lastContact = 0;
  #workingUntil = 0;
  #quiescedUntil = -1;
  /** By its own clock; for the check that nothing is stopped too early. */
  quiescedAt: number | undefined;
  alive = true;

  constructor(options: {
    ref: InstanceRef;
    secret: string;
    traits: KeeperTraits;
    scheduler: Scheduler;
    events: KeeperEvents;
  }) {
    this.ref = options.ref;
    this.secret = options.secret;
    this.traits = options.traits;
    this.#scheduler = options.scheduler;
    this.#events = options.events;
    this.#startedAt = options.scheduler.now;
    this.#planTick();
  }

  get isAdmitted(): boolean {
    return this.#policy !== undefined;
  }

  get fence(): number {
    return this.#fence;
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** With everything else in its instance, until somebody resumes it. */
  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  get policy(): AdmitRequest | undefined {
    return this.#policy;
  }

  /** How long it really ran, by its own clock. */
  ran(): number {
    const until = this.#pausedAt ?? this.#scheduler.now;
    return (until - this.#startedAt - this.#pausedMs) * (1 + this.traits.drift);
  }

  idleForMs(): number {
    return this.#heldAwakeBy().length > 0 ? 0 : this.ran() - this.#lastUse;
  }

  admit(request: AdmitRequest, fence: number): void {
    this.#guard(fence);
    if (request.instanceId !== this.ref.instanceId)
      throw new HoldfastError("fence_stale", "not this instance");
    if (request.spare && this.#isOwned) throw new HoldfastError("wrong_state", "it was given away");
    if (this.#policy === undefined || (!this.#isOwned && !request.spare)) this.#lastUse = this.ran();
    this.#policy = request;
    this.#isOwned ||= !request.spare;
    this.#quiescedUntil = -1;
    this.#events.admitted(this, request);
    this.#planTick();
  }

  info(fence: number): { instanceId: string; isOwned: boolean } {
    this.#contacted();
    this.#guard(fence);
    return { instanceId: this.ref.instanceId, isOwned: this.#isOwned };
  }

  quiesce(lifetimeMs: number, fence: number): QuiesceAnswer {
    this.#guard(fence);
    this.#assertAdmitted();
    const because = this.#heldAwakeBy();
    const idleForMs = this.idleForMs();
    if (because.length > 0 || idleForMs < lifetimeMs) return { state: "busy", because, idleForMs };
    this.#quiescedUntil = this.ran() + QUIESCE_MS;
    this.quiescedAt = this.ran();
    return { state: "quiesced" };
  }

  resume(fence: number): void {
    this.#guard(fence);
    this.#quiescedUntil = -1;
  }

  activity(fence: number): { idleForMs: number; heldAwakeBy: string[] } {
    this.#guard(fence);
    return { idleForMs: this.idleForMs(), heldAwakeBy: this.#heldAwakeBy() };
  }

  claimFence(request: { fence: number; required: boolean }, fence: number): void {
    this.#guard(fence);
    if (request.fence >= this.#claim.fence) this.#claim = request;
  }

  touch(fence: number): void {
    this.#guard(fence);
    this.#assertOpen();
    this.#lastUse = this.ran();
  }

  /** Accepts a command, which then takes its time whatever becomes of the caller. */
  start(command: { commandId: string; durationMs: number; fence: number; claimFence: number }): void {
    this.#guard(command.fence);
    this.#assertOpen();
    const isStale =
      command.claimFence < this.#claim.fence && (command.claimFence > 0 || this.#claim.required);
    if (isStale) throw new HoldfastError("claim_lost", "somebody else has it now", { started: "no" });
    this.#events.accepts(this, command);
    if (this.#commands.has(command.commandId)) return;
    this.#commands.set(command.commandId, { commandId: command.commandId, state: "running" });
    this.#end(command.commandId, command.durationMs);
  }

  running(): string[] {
    return [...this.#commands.values()]
      .filter(({ state }) => state === "running")
      .map(({ commandId }) => commandId);
  }

  /** What became of it, if it is over. */
  result(commandId: string): "running" | "done" | "lost" {
    return this.#commands.get(commandId)?.state ?? "lost";
  }

  /** A build in the background: work being done inside. */
  workFor(ms: number): void {
    this.#workingUntil = Math.max(this.#workingUntil, this.ran() + ms);
  }

  connect(contact: Contact, fence: number): void {
    this.#guard(fence);
    this.contacts.add(contact);
  }

  disconnect(contact: Contact): void {
    if (this.contacts.delete(contact)) this.#contacted();
  }

  /** As SIGSTOP, and SIGCONT after a while. */
  pause(ms: number): void {
    if (this.isPaused || !this.alive) return;
    this.#pausedAt = this.#scheduler.now;
    this.#pausedUntil = this.#scheduler.now + ms;
    const run = () => this.#runOn();
    this.#scheduler.park({ op: `keeper ${this.ref.instanceId} runs on`, due: this.#pausedUntil, run });
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#pausedAt ??= this.#scheduler.now;
  }

  thaw(): void {
    this.#isFrozen = false;
    if (this.#pausedUntil <= this.#scheduler.now) this.#runOn();
  }

  /** When it hears what is said to it now. */
  heardFrom(): number {
    if (this.traits.hangs) return Number.POSITIVE_INFINITY;
    if (this.#isFrozen) return this.#scheduler.now + BUFFERED_MS;
    return this.isPaused ? this.#pausedUntil + 1 : 0;
  }

  /** The process is gone. Whoever watched it notices. */
  die(): void {
    if (!this.alive) return;
    this.alive = false;
    for (const command of this.#commands.values()) if (command.state === "running") command.state = "lost";
    const contacts = [...this.contacts];
    this.contacts.clear();
    for (const { onEnd } of contacts) onEnd();
  }

  #runOn(): void {
    if (this.#pausedAt === undefined || this.#isFrozen) return;
    this.#pausedMs += this.#scheduler.now - this.#pausedAt;
    this.#pausedAt = undefined;
    this.#planTick();
  }

  #end(commandId: string, afterMs: number): void {
    const run = () => {
      const command = this.#commands.get(commandId);
      if (command?.state !== "running") return;
      if (this.isPaused) return this.#end(commandId, this.#isFrozen ? BUFFERED_MS : 1_000);
      command.state = "done";
      this.#lastUse = this.ran();
      this.#events.worked(this, commandId);
    };
    const due = this.#scheduler.now + afterMs;
    this.#scheduler.park({ op: `keeper ${this.ref.instanceId}: ${commandId} ends`, due, run });
  }

  /** The highest fence that it has seen is the lowest that it takes. */
  #guard(fence: number): void {
    this.#contacted();
    if (fence < this.#fence)
      throw new HoldfastError("fence_stale", `fence ${fence} is older than ${this.#fence}`);
    this.#fence = fence;
  }

  #assertAdmitted(): void {
    if (!this.isAdmitted) throw new HoldfastError("wrong_state", "not admitted", { started: "no" });
  }

  #assertOpen(): void {
    this.#assertAdmitted();
    if (this.#quiescedUntil >= this.ran())
      throw new HoldfastError("quiesced", "it is about to be stopped", { started: "no", retryable: true });
  }

  #heldAwakeBy(): string[] {
    const held = this.running().map((commandId) => `command ${commandId} is running`);
    if (this.#workingUntil > this.ran()) held.push("work is being done inside");
    else if (this.#workingUntil > this.#lastUse) this.#lastUse = this.#workingUntil;
    return held;
  }

  #contacted(): void {
    this.#lastContact = this.ran();
  }

  /** Looks at its own deadlines, which only running time brings nearer. */
  #tick(): void {
    if (!this.alive || this.isPaused || this.traits.hangs) return;
    const end = this.#nextEnd();
    if (this.ran() + 1 < end.at) this.#planTick();
    else this.#events.exits(this, end.because);
  }

  #planTick(): void {
    if (this.#timer !== undefined) this.#timer.cancelled = true;
    // What it does may end meanwhile, and its end comes nearer then.
    const soonest = this.contacts.size > 0 ? LEAST_ORPHAN_MS : ADMISSION_MS;
    const wait = Math.min((this.#nextEnd().at - this.ran()) / (1 + this.traits.drift), soonest);
    const due = this.#scheduler.now + Math.max(1, Math.ceil(wait));
    const op = `keeper ${this.ref.instanceId} looks at its deadlines`;
    this.#timer = this.#scheduler.park({ op, due, run: () => this.#tick() });
  }

  #nextEnd(): { at: number; because: string } {
    if (this.#policy === undefined) return { at: ADMISSION_MS, because: "not admitted" };
    const { lifetimeSeconds, maxLifetimeSeconds, orphanLimitSeconds } = this.#policy;
    const isBusy = this.#heldAwakeBy().length > 0;
    const patience = isBusy ? orphanLimitSeconds * 1000 : Math.max(lifetimeSeconds * 2000, LEAST_ORPHAN_MS);
    const lastContact = this.contacts.size > 0 ? this.ran() : this.#lastContact;
    const orphan = { at: lastContact + patience, because: "without a server" };
    const oldest = maxLifetimeSeconds === null ? Number.POSITIVE_INFINITY : maxLifetimeSeconds * 1000;
    return oldest < orphan.at ? { at: oldest, because: "max lifetime" } : orphan;
  }
}
