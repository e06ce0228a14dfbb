import { nextStep } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { carryOut, type EffectDeps } from "./effects.ts";
import type { Keepers } from "./keepers.ts";

/** Enough at once that one which hangs does not hold up the others, few enough not to start a storm. */
const CONCURRENCY = 32;
/** The timer that a lost wake-up would cost; every real wait is in a row, with its own time. */
const LONGEST_SLEEP_MS = 60_000;
/** A row that is due although it is being worked on must not make the loop spin. */
const SHORTEST_SLEEP_MS = 100;
/** After a pass that threw: mostly it is the store, whose disk is full, and would throw at once again. */
const REST_AFTER_FAILURE_MS = 1_000;
/** A clock that goes back by more was set; less is how time servers keep it right. */
const SET_BACK_MS = 1_000;
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
  /** Sandboxes that the loop has taken up. */
  readonly #taken = new Set<string>();
  #lookedAt = 0;
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
  async adopt(): Promise<void> {
    await eachOf(await this.#deps.store.unsettled(), (id) => this.#settleLogged(id));
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
    const { clock, closing, log } = this.#deps;
    while (!closing.aborted) {
      try {
        await this.#takeUpDueRows();
        await this.#sleepUntilDue();
      } catch (error) {
        log.error("the rows cannot be read", { error: String(error) });
        await clock.sleep(REST_AFTER_FAILURE_MS, closing);
      }
    }
  }

  /** Waits for none of them: a stop that hangs is no reason to be late for another sandbox. */
  async #takeUpDueRows(): Promise<void> {
    const { store, clock } = this.#deps;
    const before = this.#lookedAt;
    this.#lookedAt = clock.now();
    // The times in the rows mean nothing any more: all are looked at, and those that must wait get new ones.
    if (this.#lookedAt < before - SET_BACK_MS) return this.adopt();
    const due = await store.due(clock.now(), CONCURRENCY + this.#taken.size);
    const free = due.filter((id) => !this.#taken.has(id));
    for (const id of free.slice(0, CONCURRENCY - this.#taken.size)) void this.#takeUp(id);
  }

  async #takeUp(sandboxId: string): Promise<void> {
    const { clock, closing } = this.#deps;
    this.#taken.add(sandboxId);
    const worked = await this.#settleLogged(sandboxId);
    if (!worked) await clock.sleep(REST_AFTER_FAILURE_MS, closing);
    this.#taken.delete(sandboxId);
  }

  async #sleepUntilDue(): Promise<void> {
    const { store, clock, closing } = this.#deps;
    this.#wake = new AbortController();
    const due = (await store.nextDueAt()) ?? Number.POSITIVE_INFINITY;
    const ms = Math.min(LONGEST_SLEEP_MS, Math.max(SHORTEST_SLEEP_MS, due - clock.now()));
    await clock.sleep(ms, AbortSignal.any([this.#wake.signal, closing]));
  }

  /** Whether it came to rest. */
  async #settleLogged(sandboxId: string): Promise<boolean> {
    try {
      await this.settle(sandboxId);
      return true;
    } catch (error) {
      if (!this.#deps.closing.aborted)
        this.#deps.log.error("reconcile failed", { sandbox: sandboxId, error: String(error) });
      return false;
    }
  }

  async #run(sandboxId: string, pass: Pass): Promise<void> {
    try {
      do {
        pass.again = false;
        await this.#untilRest(sandboxId);
      } while (pass.again);
    } catch (error) {
      // A launch that was cut off: whatever it threw, this is why.
      throw this.#deps.closing.aborted ? shuttingDown() : error;
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

async function eachOf(ids: readonly string[], work: (id: string) => Promise<unknown>): Promise<void> {
  const queue = ids.values();
  const worker = async () => {
    for (const id of queue) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, ids.length) }, worker));
}
