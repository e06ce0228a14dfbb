import { type Acting, type Ledger, nextStep, type Ticket } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Bell } from "./bell.ts";
import { carryOut, type EffectDeps } from "./effects.ts";
import type { Jobs } from "./jobs.ts";
import { Shift, TICKET_MS, TicketLost } from "./shift.ts";

/** Enough at once that one which hangs does not hold up the others, few enough not to start a storm. */
const CONCURRENCY = 64;
/** The timer that a lost wake-up would cost; every real wait is in a row, with its own time. */
const LONGEST_SLEEP_MS = 30_000;
/** What another server wrote shows only when one looks. */
const LONGEST_SLEEP_SHARED_MS = 1_000;
/** A row that is due although it is being worked on must not make the loop spin. */
const SHORTEST_SLEEP_MS = 100;
/** After a pass that threw: mostly it is the store, whose disk is full, and would throw at once again. */
const REST_AFTER_FAILURE_MS = 1_000;
/** How often to look whether another server is done with a row that somebody here waits for. */
const ELSEWHERE_MS = 200;
/** A sandbox passes through fewer steps than this on its longest way; more means that two rules disagree. */
const MAX_STEPS = 50;

interface Pass {
  again: boolean;
  done: Promise<void>;
  /** What the loop took while this pass was asking for the same: it is the pass's to use. */
  readonly offered: PromiseWithResolvers<Shift>;
}

export interface ReconcilerDeps extends Omit<EffectDeps, "kick"> {
  /** This server, among those that share the store. */
  readonly owner: string;
  readonly bell: Bell;
  readonly jobs: Jobs;
  /** Before anything is taken for due: if nobody was there to see the time pass, it is not. */
  readonly afterAbsence: () => Promise<void>;
}

/** Brings what is true towards what is wanted, one sandbox at a time, from the rows alone. */
export class Reconciler {
  readonly #passes = new Map<string, Pass>();
  readonly #deps: ReconcilerDeps;
  readonly #effects: EffectDeps;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #jobs: Promise<void> = Promise.resolve();

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps;
    this.#effects = { ...deps, kick: (sandboxId) => this.kick(sandboxId) };
  }

  /**
   * Resolves when nothing more can be done about this sandbox now, or when another server has it. One pass at a time;
   * a call during one adds another.
   */
  settle(sandboxId: string): Promise<void> {
    const current = this.#passes.get(sandboxId);
    if (current !== undefined) {
      current.again = true;
      return current.done;
    }
    return this.#begin(sandboxId);
  }

  kick(sandboxId: string): void {
    if (this.#deps.closing.aborted) return;
    void this.#logged(sandboxId, this.settle(sandboxId));
  }

  /** What was left unfinished, and every instance that should be running, looked at once: adoption. */
  async adopt(): Promise<void> {
    await eachOf(await this.#deps.store.unsettled(), (id) => this.#logged(id, this.settle(id)));
  }

  start(): void {
    this.#loop ??= this.#watchDueRows();
  }

  /** Ends the loop and waits for what is under way. */
  async close(): Promise<void> {
    this.#wake.abort();
    await this.#loop;
    await this.#jobs;
    await Promise.allSettled([...this.#passes.values()].map((pass) => pass.done));
  }

  async #watchDueRows(): Promise<void> {
    const { clock, closing, log } = this.#deps;
    while (!closing.aborted) {
      try {
        this.#wake = new AbortController();
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
    const { store, hosts, owner, clock, jobs } = this.#deps;
    await hosts.read();
    await this.#deps.afterAbsence();
    const free = CONCURRENCY - this.#passes.size;
    const askedAt = clock.now();
    if (free > 0) {
      const options = { owner, ttlMs: TICKET_MS, limit: free, except: hosts.unreachable() };
      for (const ticket of await store.takeDue(options)) this.#takeUp(ticket, askedAt);
    }
    const due = await store.takeJobs({ owner, ttlMs: TICKET_MS });
    if (due.length > 0) this.#jobs = Promise.all([this.#jobs, jobs.run(due)]).then(() => this.#wake.abort());
  }

  #takeUp(ticket: Ticket, askedAt: number): void {
    const { store, clock } = this.#deps;
    const shift = new Shift({ store, clock, ticket, askedAt });
    const current = this.#passes.get(ticket.key);
    if (current !== undefined) current.offered.resolve(shift);
    else void this.#logged(ticket.key, this.#begin(ticket.key, shift));
  }

  async #sleepUntilDue(): Promise<void> {
    const { store, clock, closing, hosts } = this.#deps;
    const longest = store.isShared ? LONGEST_SLEEP_SHARED_MS : LONGEST_SLEEP_MS;
    const until = AbortSignal.any([this.#wake.signal, closing]);
    if (this.#passes.size >= CONCURRENCY) return clock.sleep(longest, until);
    const due = await store.nextDueAt({ except: hosts.unreachable() });
    const ms = due === undefined ? longest : due - (await store.now());
    await clock.sleep(Math.min(longest, Math.max(SHORTEST_SLEEP_MS, ms)), until);
  }

  #begin(sandboxId: string, shift?: Shift): Promise<void> {
    const pass: Pass = { again: false, done: Promise.resolve(), offered: Promise.withResolvers() };
    this.#passes.set(sandboxId, pass);
    pass.done = this.#run(sandboxId, pass, shift);
    return pass.done;
  }

  async #run(sandboxId: string, pass: Pass, given: Shift | undefined): Promise<void> {
    try {
      const shift =
        given ?? (await this.#takeShift(sandboxId)) ?? (await this.#waitElsewhere(sandboxId, pass));
      if (shift !== undefined) await this.#work(sandboxId, pass, shift);
    } catch (error) {
      if (error instanceof TicketLost) return;
      // A launch that was cut off: whatever it threw, this is why.
      throw this.#deps.closing.aborted ? shuttingDown() : error;
    } finally {
      this.#passes.delete(sandboxId);
      // Offered too late to be used: nobody else should have to wait for it to run out.
      void this.#logged(
        sandboxId,
        pass.offered.promise.then((late) => late.end()),
      );
      // A step may have given a row a time that is nearer than the one the loop sleeps for.
      this.#wake.abort();
    }
  }

  async #work(sandboxId: string, pass: Pass, shift: Shift): Promise<void> {
    const { clock, closing } = this.#deps;
    try {
      do {
        pass.again = false;
        await this.#untilRest(sandboxId, shift);
      } while (pass.again);
    } catch (error) {
      // Nobody takes it up again before this is over: the ticket is still ours.
      if (!closing.aborted && !(error instanceof TicketLost))
        await clock.sleep(REST_AFTER_FAILURE_MS, closing);
      throw error;
    } finally {
      await shift.end();
    }
  }

  async #takeShift(sandboxId: string): Promise<Shift | undefined> {
    const { store, clock, owner, afterAbsence } = this.#deps;
    await afterAbsence();
    const askedAt = clock.now();
    const ticket = await store.ticket(sandboxId, { owner, ttlMs: TICKET_MS });
    return ticket === undefined ? undefined : new Shift({ store, clock, ticket, askedAt });
  }

  /** Another server has it, or our own loop has just taken it, and hands it over. */
  async #waitElsewhere(sandboxId: string, { offered }: Pass): Promise<Shift | undefined> {
    const { bell, clock, closing } = this.#deps;
    const elsewhere = bell.wait(sandboxId, { ms: ELSEWHERE_MS, clock, signal: closing });
    return Promise.race([offered.promise, elsewhere.then(() => undefined)]);
  }

  async #untilRest(sandboxId: string, shift: Shift): Promise<void> {
    const { store, keepers, closing } = this.#deps;
    let seen: number | undefined;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const ledger = await store.ledger(sandboxId);
      if (ledger === undefined) return;
      // The last step wrote nothing: it may have been refused because the ticket is no longer ours.
      if (ledger.version === seen) await shift.confirm();
      seen = ledger.version;
      // Whoever waits for this sandbox must be told, not left to ask again and again.
      if (closing.aborted) throw shuttingDown();
      const connected = ledger.lease !== undefined && keepers.isKnown(ledger.lease);
      const step = nextStep(ledger, { connected });
      if (step.do === "rest" || step.do === "wait" || this.#isOutOfReach(step, ledger)) return;
      await carryOut(step, ledger, shift, this.#effects);
    }
    throw new Error(`sandbox ${sandboxId} does not come to rest`);
  }

  /** One probe is made for all the rows of a backend that is away, and this is not it. */
  #isOutOfReach(step: Acting, { sandbox }: Ledger): boolean {
    const provider = "lease" in step ? step.lease.provider : sandbox?.provider;
    if (provider === undefined || this.#deps.hosts.get(provider).nextProbeAt === null) return false;
    return needsBackend.has(step.do);
  }

  async #logged(sandboxId: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!this.#deps.closing.aborted)
        this.#deps.log.error("reconcile failed", { sandbox: sandboxId, error: String(error) });
    }
  }
}

const needsBackend: ReadonlySet<Acting["do"]> = new Set([
  ...(["launch", "connect", "pause", "resume", "stop", "remove-disk"] as const),
]);

function shuttingDown(): HoldfastError {
  return new HoldfastError("unavailable", "the server is shutting down", {
    hint: "try again when it is back; what was begun is finished then",
    started: "no",
  });
}

async function eachOf(ids: readonly string[], work: (id: string) => Promise<unknown>): Promise<void> {
  const queue = ids.values();
  const worker = async () => {
    for (const id of queue) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, ids.length) }, worker));
}
