import { type Clock, nextStep, type Store } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { carryOut, type EffectDeps } from "./effects.ts";
import type { Keepers } from "./keepers.ts";

/** Rows taken at once when many are due. */
const BATCH = 64;
/** The timer that a lost wake-up would cost; every real wait is in a row, with its own time. */
const LONGEST_SLEEP_MS = 60_000;
/** A sandbox passes through fewer steps than this on its longest way; more means that two rules disagree. */
const MAX_STEPS = 50;

interface Pass {
  again: boolean;
  done: Promise<void>;
}

/** Brings what is true towards what is wanted, one sandbox at a time, from the rows alone. */
export class Reconciler {
  readonly #passes = new Map<string, Pass>();
  readonly #deps: EffectDeps;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(deps: Omit<EffectDeps, "kick">) {
    this.#deps = { ...deps, kick: (sandboxId) => this.kick(sandboxId) };
  }

  /** Resolves when nothing more can be done about this sandbox now. One pass at a time; a call during one adds another. */
  settle(sandboxId: string): Promise<void> {
    const current = this.#passes.get(sandboxId);
    if (current !== undefined) {
      current.again = true;
      return current.done;
    }
    const pass: Pass = { again: false, done: Promise.resolve() };
    this.#passes.set(sandboxId, pass);
    pass.done = this.#run(sandboxId, pass);
    return pass.done;
  }

  kick(sandboxId: string): void {
    if (this.#deps.closing.aborted) return;
    void this.#settleLogged(sandboxId);
  }

  /** What was left unfinished, and every instance that should be running, looked at once: adoption. */
  async adopt(): Promise<number> {
    const ids = await this.#deps.store.unsettled();
    await eachOf(ids, (id) => this.#settleLogged(id));
    return ids.length;
  }

  start(): void {
    this.#loop ??= this.#watchDueRows();
  }

  /** Ends the loop and waits for what is under way. */
  async close(): Promise<void> {
    this.#wake.abort();
    await this.#loop;
    await Promise.allSettled([...this.#passes.values()].map((pass) => pass.done));
  }

  async #watchDueRows(): Promise<void> {
    const { store, clock, closing } = this.#deps;
    while (!closing.aborted) {
      const ids = await store.due(clock.now(), BATCH);
      await eachOf(ids, (id) => this.#settleLogged(id));
      await this.#sleepUntilDue(store, clock);
    }
  }

  async #sleepUntilDue(store: Store, clock: Clock): Promise<void> {
    this.#wake = new AbortController();
    const due = (await store.nextDueAt()) ?? Number.POSITIVE_INFINITY;
    const ms = Math.min(LONGEST_SLEEP_MS, Math.max(50, due - clock.now()));
    await clock.sleep(ms, AbortSignal.any([this.#wake.signal, this.#deps.closing]));
  }

  async #settleLogged(sandboxId: string): Promise<void> {
    try {
      await this.settle(sandboxId);
    } catch (error) {
      if (!this.#deps.closing.aborted)
        this.#deps.log.error("reconcile failed", { sandbox: sandboxId, error: String(error) });
    }
  }

  async #run(sandboxId: string, pass: Pass): Promise<void> {
    try {
      do {
        pass.again = false;
        await this.#untilRest(sandboxId);
      } while (pass.again);
    } finally {
      this.#passes.delete(sandboxId);
      // A step may have given a row a time that is nearer than the one the loop sleeps for.
      this.#wake.abort();
    }
  }

  async #untilRest(sandboxId: string): Promise<void> {
    const { store, keepers, clock, closing } = this.#deps;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const holding = await store.holding(sandboxId);
      if (holding === undefined) return;
      // Whoever waits for this sandbox must be told, not left to ask again and again.
      if (closing.aborted) throw shuttingDown();
      const step = nextStep(holding, {
        connected: isConnected(keepers, holding.lease?.instanceId),
        now: clock.now(),
      });
      if (step.do === "rest" || step.do === "wait") return;
      await carryOut(step, holding, this.#deps);
    }
    throw new Error(`sandbox ${sandboxId} does not come to rest`);
  }
}

function shuttingDown(): HoldfastError {
  return new HoldfastError("unavailable", "the server is shutting down", {
    hint: "try again when it is back; what was begun is finished then",
    started: "no",
  });
}

function isConnected(keepers: Keepers, instanceId: string | undefined): boolean {
  return instanceId !== undefined && keepers.link(instanceId) !== undefined;
}

/** Enough at once to hide the waiting, few enough not to start a storm. */
const CONCURRENCY = 16;

async function eachOf(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const queue = ids.values();
  const worker = async () => {
    for (const id of queue) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, ids.length) }, worker));
}
