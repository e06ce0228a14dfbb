import type { KeeperAddress, KeeperControl, QuiesceAnswer } from "@holdfast/core";
import { type AdmitMessage, AdmitRequest, HoldfastError } from "@holdfast/protocol";
import type { Faults } from "../faults.ts";
import type { Rng } from "../rng.ts";
import type { Actor, Scheduler } from "../scheduler.ts";
import type { Fate, Wire } from "../wire.ts";
import type { Contact, SimKeeper } from "./keeper.ts";

/** As the real link: whoever does not answer by then is not waited for. */
const TIMEOUT_MS = 5_000;

export interface KeeperWitness {
  /** The keeper has told the server who it is. */
  greeted(actor: Actor, instanceId: string): void;
  /** The server is about to open the gate. */
  admits(actor: Actor, request: AdmitRequest): void;
}

interface Options {
  readonly actor: Actor;
  readonly scheduler: Scheduler;
  readonly wire: Wire;
  readonly faults: Faults;
  readonly rng: Rng;
  readonly witness: KeeperWitness;
  readonly keeperAt: (path: string) => SimKeeper | undefined;
  readonly phaseOf: (instanceId: string) => string | undefined;
  readonly isCutOff: () => boolean;
}

interface Line {
  readonly address: KeeperAddress;
  readonly secret: string;
  readonly fence: number;
}

/** One server's way to the keepers. */
export class Door {
  readonly #options: Options;
  readonly #watches = new Map<Contact, SimKeeper>();

  constructor(options: Options) {
    this.#options = options;
  }

  open(line: Line): SimLink {
    return new SimLink(line, this.#options, this.#watches);
  }

  /** The server is dead: its connections are closed by its kernel, and nobody is told in it. */
  abandon(): void {
    for (const [contact, keeper] of this.#watches) keeper.disconnect(contact);
    this.#watches.clear();
  }

  /** The network between is cut. */
  cut(): void {
    const watches = [...this.#watches];
    for (const [contact, keeper] of watches) {
      keeper.disconnect(contact);
      contact.onEnd();
    }
  }
}

/** What a server says to one keeper. */
export class SimLink implements KeeperControl {
  readonly #line: Line;
  readonly #options: Options;
  /** All of this server's. */
  readonly #watches: Map<Contact, SimKeeper>;

  constructor(line: Line, options: Options, watches: Map<Contact, SimKeeper>) {
    this.#line = line;
    this.#options = options;
    this.#watches = watches;
  }

  async watch({ onEnd }: { onEnd: () => void }): Promise<{ close(): void }> {
    const { actor, scheduler } = this.#options;
    const { address, fence } = this.#line;
    const ended = () => {
      this.#watches.delete(contact);
      scheduler.park({ actor, op: `${actor.name} loses ${address.path}`, due: scheduler.now, run: onEnd });
    };
    const contact: Contact = { onEnd: ended };
    const { epoch } = actor;
    let met: SimKeeper | undefined;
    const close = () => {
      this.#watches.delete(contact);
      met?.disconnect(contact);
    };
    try {
      await this.#send("watch", (keeper) => {
        // A connection does not outlive its server.
        if (actor.epoch !== epoch) return;
        met = keeper;
        keeper.connect(contact, fence);
        this.#watches.set(contact, keeper);
      });
    } catch (error) {
      close();
      throw error;
    }
    return { close };
  }

  async info(): Promise<{ instanceId: string; isOwned: boolean }> {
    const info = await this.#send("info", (keeper) => keeper.info(this.#line.fence));
    this.#options.witness.greeted(this.#options.actor, info.instanceId);
    return info;
  }

  admit(message: AdmitMessage): Promise<void> {
    const request = AdmitRequest.parse(message);
    this.#options.witness.admits(this.#options.actor, request);
    return this.#send("admit", (keeper) => keeper.admit(request, this.#line.fence));
  }

  quiesce({ lifetimeMs }: { lifetimeMs: number }): Promise<QuiesceAnswer> {
    return this.#send("quiesce", (keeper) => keeper.quiesce(lifetimeMs, this.#line.fence));
  }

  resume(): Promise<void> {
    return this.#send("resume", (keeper) => keeper.resume(this.#line.fence));
  }

  touch(): Promise<void> {
    return this.#send("touch", (keeper) => keeper.touch(this.#line.fence));
  }

  activity(): Promise<{ idleForMs: number; heldAwakeBy: string[] }> {
    return this.#send("activity", (keeper) => keeper.activity(this.#line.fence));
  }

  claimFence(request: { fence: number; required: boolean }): Promise<void> {
    return this.#send("claimFence", (keeper) => keeper.claimFence(request, this.#line.fence));
  }

  /** Runs a command to its end. Resolves only when the keeper says that its output is on the disk. */
  async run(command: { commandId: string; durationMs: number; claimFence: number }): Promise<void> {
    const { fence } = this.#line;
    await this.#send(`run ${command.commandId}`, (keeper) => keeper.start({ ...command, fence }));
    const { scheduler } = this.#options;
    const patience = scheduler.now + command.durationMs + 60_000;
    for (let waitMs = command.durationMs + 1; scheduler.now < patience; waitMs = 1_000) {
      const result = await this.#send(
        `result ${command.commandId}`,
        (keeper) => keeper.result(command.commandId),
        waitMs,
      );
      if (result === "done") return;
      if (result === "lost") throw new HoldfastError("keeper_lost", "the command was lost");
    }
    throw new HoldfastError("keeper_lost", "no result came");
  }

  #send<T>(op: string, apply: (keeper: SimKeeper) => T, afterMs = 0): Promise<T> {
    return sendToKeeper(this.#line, this.#options, op, apply, afterMs);
  }
}

function sendToKeeper<T>(
  line: Line,
  options: Options,
  op: string,
  apply: (keeper: SimKeeper) => T,
  afterMs = 0,
): Promise<T> {
  const { actor, wire, keeperAt, isCutOff } = options;
  const { path } = line.address;
  const phase = options.phaseOf(keeperAt(path)?.ref.instanceId ?? "");
  const fate = later(isCutOff() ? lost : fateOf(options, phase), afterMs);
  return wire.send({
    actor,
    op: `${actor.name} ${op} at ${path}`,
    fate,
    lingers: true,
    heardFrom: () => keeperAt(path)?.heardFrom() ?? 0,
    timeout: { ms: TIMEOUT_MS + afterMs, error: () => noAnswer(`no answer to ${op} at ${path}`) },
    apply: () => {
      const keeper = keeperAt(path);
      if (keeper === undefined || keeper.secret !== line.secret) throw noAnswer(`nobody answers at ${path}`);
      return apply(keeper);
    },
  });
}

const lost: Fate = { request: "lost", reply: "lost" };

function fateOf({ faults, rng, wire }: Options, phase: string | undefined): Fate {
  const plain = wire.plainFate();
  if (faults.strikes("keeper_lost_request", phase)) return lost;
  if (faults.strikes("keeper_lost_reply", phase)) return { ...plain, reply: "lost" };
  if (faults.strikes("keeper_slow", phase))
    return { ...plain, request: { afterMs: rng.between(500, 8_000) } };
  return plain;
}

function later(fate: Fate, ms: number): Fate {
  return fate.request === "lost" ? fate : { ...fate, request: { afterMs: fate.request.afterMs + ms } };
}

function noAnswer(message: string): HoldfastError {
  return new HoldfastError("keeper_lost", message);
}
