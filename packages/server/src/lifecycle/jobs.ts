import type { Job, Store } from "@holdfast/core";
import type { Log } from "../log.ts";
import { messageOf } from "./effects.ts";
import type { SnapshotTender } from "./snapshot-tender.ts";
import type { Sweeper } from "./sweeper.ts";

/** Soon enough that an orphan is noticed; a list of what is there costs milliseconds. */
const SWEEP_EVERY_MS = 60_000;
const AUDIT_EVERY_MS = 300_000;
/** Evidence of an instance is kept so long after its end: a late create that the sweep finds is then known by name. */
const KEEP_GONE_MS = 86_400_000;
/** Of each sandbox; the oldest go first. */
const KEEP_ENTRIES = 1_000;

const SWEEP = "sweep:";
const AUDIT = "audit";
const SNAPSHOTS = "snapshots";

/** The name of a backend's periodic pass. */
export function sweepJob(provider: string): string {
  return SWEEP + provider;
}

/** Periodic work that one server does for all: whoever gets the job's ticket. */
export class Jobs {
  readonly #store: Store;
  readonly #sweeper: Sweeper;
  readonly #tender: SnapshotTender;
  readonly #log: Log;

  constructor(options: { store: Store; sweeper: Sweeper; tender: SnapshotTender; log: Log }) {
    this.#tender = options.tender;
    this.#store = options.store;
    this.#sweeper = options.sweeper;
    this.#log = options.log;
  }

  async add(providers: Iterable<string>): Promise<void> {
    const now = await this.#store.now();
    for (const provider of providers) await this.#store.addJob(sweepJob(provider), now);
    await this.#store.addJob(AUDIT, now + AUDIT_EVERY_MS);
    if (!this.#tender.hasWork) return;
    await this.#store.addJob(SNAPSHOTS, now);
    // What an earlier server has left half made goes at once.
    await this.#store.hurryJob(SNAPSHOTS);
  }

  async run(due: readonly Job[]): Promise<void> {
    await Promise.all(due.map((job) => this.#run(job)));
  }

  async #run(job: Job): Promise<void> {
    try {
      await this.#store.finishJob(job, await this.#work(job));
    } catch (error) {
      // Its ticket runs out, and whoever takes it next does it again.
      this.#log.error("job failed", { job: job.name, error: messageOf(error) });
    }
  }

  #work(job: Job): Promise<{ dueAt: number; memory: Record<string, unknown> }> {
    if (job.name === AUDIT) return this.#audit();
    return job.name === SNAPSHOTS ? this.#tend() : this.#sweep(job);
  }

  async #tend(): Promise<{ dueAt: number; memory: Record<string, unknown> }> {
    return { dueAt: await this.#tender.tend(), memory: {} };
  }

  async #sweep(job: Job): Promise<{ dueAt: number; memory: Record<string, unknown> }> {
    const memory = await this.#sweeper.periodic(job.name.slice(SWEEP.length), job.memory);
    const now = await this.#store.now();
    // A backend that cannot be reached is probed by this very list, and by nothing else.
    return { dueAt: this.#sweeper.nextProbeAt(job.name.slice(SWEEP.length)) ?? now + SWEEP_EVERY_MS, memory };
  }

  async #audit(): Promise<{ dueAt: number; memory: Record<string, unknown> }> {
    const { repaired, forgotten } = await this.#store.audit({
      keepGoneMs: KEEP_GONE_MS,
      keepEntries: KEEP_ENTRIES,
    });
    if (repaired.length > 0) this.#log.error("rows had lost their timer", { sandboxes: repaired });
    if (forgotten > 0) this.#log.info("old rows forgotten", { rows: forgotten });
    return { dueAt: (await this.#store.now()) + AUDIT_EVERY_MS, memory: {} };
  }
}
