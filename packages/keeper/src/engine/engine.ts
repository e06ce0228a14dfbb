import type { Env, KeeperBoot } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { makeId } from "./ids.ts";
import { OomCounter } from "./oom.ts";
import {
  type FinishedRecord,
  nameOf,
  type RunEnd,
  type RunFacts,
  type RunKind,
  type RunRecord,
} from "./record.ts";
import { Records } from "./records.ts";
import { Run } from "./run.ts";
import { findShell, type Shell } from "./shell.ts";
import { UseClock } from "./use-clock.ts";

/**
 * A keeper starts reluctant to compile (`scripts/build-keeper.ts`), which keeps an idle one small. One that runs so many
 * is in use: compiled, each takes 0.06 ms less.
 */
const COMPILES_AFTER = 8;

export interface RunRequest {
  /** Chosen by the caller; without it the engine makes one. */
  readonly id: string | undefined;
  readonly kind: RunKind;
  /** Equal for equal requests, see `fingerprint` in ids.ts. */
  readonly fingerprint: string;
  readonly facts: RunFacts;
}

/** `new`: the caller must carry it out and call `finish`. The others were asked for before, and are not run again. */
export type Claim =
  | { readonly state: "new"; readonly run: Run }
  | { readonly state: "running"; readonly run: Run }
  | { readonly state: "finished"; readonly record: FinishedRecord };

/**
 * What every surface stands on: at most one run per id, journalled before it is started, with its log on disk and its
 * record kept for a while. It starts nothing by itself (see launch.ts).
 */
export class Engine {
  readonly boot: KeeperBoot;
  readonly records: Records;
  readonly oom: OomCounter;
  readonly use: UseClock;
  readonly #runs = new Map<string, Run>();
  readonly #now: () => number;
  #shell: Shell | undefined;
  #begun = 0;

  constructor(boot: KeeperBoot, { now = Date.now, use = new UseClock() } = {}) {
    this.boot = boot;
    this.#now = now;
    this.use = use;
    this.oom = new OomCounter(boot.memoryCgroupDir);
    this.records = new Records({ stateDir: boot.stateDir, now });
  }

  get now(): number {
    return this.#now();
  }

  /** Bash, or sh where there is none; looked for again as long as neither was found. */
  get shell(): Shell | undefined {
    this.#shell ??= findShell(this.boot.env);
    return this.#shell;
  }

  /** The sandbox's own environment, if it was not known at the boot. */
  addEnvironment(env: Env): void {
    const known = this.boot.env;
    if (Object.entries(env).every(([name, value]) => known[name] === value)) return;
    Object.assign(known, env);
    // It is looked for where PATH says.
    this.#shell = undefined;
  }

  /** Takes an id for a run, or finds the run that already has it. Throws if the id means other work, or is expired. */
  claim(request: RunRequest): Claim {
    if (request.id !== undefined) {
      const known = this.records.find(request.id);
      if (known !== undefined) return this.#attach(known, request);
    }
    return { state: "new", run: this.#begin(request) };
  }

  /** A run that is going on now. */
  running(id: string): Run | undefined {
    return this.#runs.get(id);
  }

  runs(): IterableIterator<Run> {
    return this.#runs.values();
  }

  /** The run could not be started: forgets that it was asked for. */
  abandon(run: Run): void {
    run.log.close();
    this.#runs.delete(run.id);
    this.records.void(run.id);
  }

  close(): void {
    this.oom.close();
    this.records.close();
  }

  #attach(known: RunRecord, request: RunRequest): Claim {
    if (known.kind !== request.kind || known.fingerprint !== request.fingerprint)
      throw otherWork(known, request);
    const run = this.#runs.get(known.id);
    if (run !== undefined) return { state: "running", run };
    const { end } = known;
    if (end === undefined)
      throw new HoldfastError("internal", `the record of ${known.id} is neither running nor ended`);
    return { state: "finished", record: { ...known, end } };
  }

  #begin(request: RunRequest): Run {
    const { kind, fingerprint, facts } = request;
    const startedAt = this.now;
    if (++this.#begun === COMPILES_AFTER) Bun.unsafe.setJITPolicy(1);
    const id = request.id ?? makeId(kind === "process" ? "proc" : "cmd", startedAt);
    const record: RunRecord = { id, kind, fingerprint, startedAt, facts };
    this.records.begin(record);
    const wroteOutput = `${nameOf(record)} wrote output`;
    const run = new Run({
      record,
      logDir: this.records.logDir,
      keepShort: (frame) => this.records.output(id, frame),
      onOutput: () => this.#used(record, wroteOutput),
      onEnd: (end) => this.#ended(record, end),
    });
    this.#runs.set(id, run);
    return run;
  }

  #ended(record: RunRecord, end: RunEnd): FinishedRecord {
    this.#runs.delete(record.id);
    this.records.end(record.id, end);
    this.#used(record, `${nameOf(record)} ended`);
    return { ...record, end };
  }

  #used({ facts }: RunRecord, what: string): void {
    if (facts.keepsAwake !== "never") this.use.note(what);
  }
}

function otherWork(known: RunRecord, request: RunRequest): HoldfastError {
  const what = known.kind === request.kind ? "another request" : `a ${known.kind}`;
  return new HoldfastError("already_exists", `the id ${known.id} was already used for ${what}`, {
    hint: "use a new id for new work; send exactly the same request to attach to the first run",
    started: "no",
    details: { id: known.id, kind: known.kind },
  });
}
