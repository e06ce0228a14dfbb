import type { QuiesceAnswer, SandboxActivity } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import type { Orphan } from "../engine/reaper.ts";
import { nameOf } from "../engine/record.ts";
import type { Run } from "../engine/run.ts";
import type { Parts } from "../parts.ts";
import type { Gate } from "./gate.ts";
import { keyOf, lookInside } from "./look-inside.ts";
import { LEAST_MS, type Look, type WorkDone, workDone } from "./work-done.ts";

// What a person reads in an answer; a hundred commands are said in one line.
const MOST_TOLD = 10;

export interface ActivityParts extends Pick<Parts, "sessions" | "terminals"> {
  readonly engine: Engine;
  readonly gate: Gate;
  readonly elapsed: () => number;
}

/**
 * What holds the sandbox awake, judged when somebody asks and never by a timer. Held awake means: something is going on
 * that must not be cut off. Idle time counts from the end of the last use (use-clock.ts).
 */
export class Activity {
  readonly #parts: ActivityParts;
  /** As of the last judgement. What was started before the first counts with all that it ever used. */
  #before: Look;

  constructor(parts: ActivityParts) {
    this.#parts = parts;
    this.#before = { at: parts.elapsed(), processes: [] };
  }

  /**
   * Whether the sandbox has been idle for a lifetime. Work inside counts since the last time that this was asked.
   * Synchronous, so that nothing can begin between the judgement and what follows from it.
   */
  judge({
    lifetimeMs,
  }: {
    lifetimeMs: number;
  }): Extract<QuiesceAnswer, { state: "busy" }> | { state: "idle" } {
    const now = this.#look();
    const work = workDone(this.#before, now, { lifetimeMs }).map((done) => this.#tellWork(done));
    this.#before = now;
    const [first] = work;
    if (first !== undefined) this.#parts.engine.use.note(first);
    const because = [...this.#holds(), ...work];
    if (because.length > 0) return { state: "busy", because: shortened(because), idleForMs: 0 };
    const { idleForMs, lastUse } = this.#parts.engine.use;
    if (idleForMs >= lifetimeMs) return { state: "idle" };
    return { state: "busy", because: [`used ${seconds(idleForMs)} ago: ${lastUse}`], idleForMs };
  }

  /** The same for whoever only wants to know: it changes no later judgement. */
  show({ lifetimeMs }: { lifetimeMs: number }): SandboxActivity {
    const work = workDone(this.#before, this.#look(), { lifetimeMs }).map((done) => this.#tellWork(done));
    const heldAwakeBy = [...this.#holds(), ...work];
    const idleForMs = heldAwakeBy.length > 0 ? 0 : this.#parts.engine.use.idleForMs;
    return { idleForMs, heldAwakeBy: shortened(heldAwakeBy) };
  }

  /** Whether it is worth judging: for certain nothing is known that holds it awake. Costs nothing. */
  seemsIdle({ lifetimeMs }: { lifetimeMs: number }): boolean {
    return this.#parts.engine.use.idleForMs >= lifetimeMs && this.#holds().length === 0;
  }

  /** Something that a run had left behind has ended, and with it all trace of its work. */
  orphanEnded({ entry, marker }: Orphan): void {
    const before = this.#before.processes.find(({ key }) => key === keyOf(entry));
    const cpuMs = entry.cpuMs + entry.waitedCpuMs - (before?.cpuMs ?? 0) - (before?.waitedCpuMs ?? 0);
    const record = marker === undefined ? undefined : this.#parts.engine.records.peek(marker);
    if (cpuMs <= LEAST_MS || record?.facts.keepsAwake === "never") return;
    this.#parts.engine.use.note(`${this.#nameOf(marker ?? entry.name)} ended`);
  }

  #look(): Look {
    return { at: this.#parts.elapsed(), processes: lookInside(this.#parts) };
  }

  #holds(): string[] {
    const { engine, terminals, gate } = this.#parts;
    const attached = terminals.loaded?.attached ?? [];
    const runs = [...engine.runs()].map(holdOf).filter((hold) => hold !== undefined);
    const holds = [...runs, ...attached.map((id) => `terminal ${id} has a viewer`)];
    // Most requests that are being answered wait for a run, which says more.
    return holds.length === 0 && gate.inside > 0 ? ["a request is being answered"] : holds;
  }

  #tellWork({ tree, cpuMs }: WorkDone): string {
    return `${this.#nameOf(tree)} used ${seconds(cpuMs)} of CPU since the last check`;
  }

  #nameOf(tree: string): string {
    const { engine, terminals } = this.#parts;
    const record = engine.records.peek(tree);
    if (record !== undefined)
      return engine.running(tree) ? nameOf(record) : `what ${nameOf(record)} left running`;
    if (tree.startsWith("session:")) return `a job of session ${tree.slice("session:".length)}`;
    const terminal = terminals.loaded?.list().find(({ ptyId }) => ptyId === tree);
    return terminal === undefined ? `the program ${tree}` : `terminal ${terminal.terminalId}`;
  }
}

function holdOf({ record, notes }: Run): string | undefined {
  const name = nameOf(record);
  if (record.kind !== "process")
    return notes.waiting === true ? `${name} waits for its turn` : `${name} is running`;
  return record.facts.keepsAwake === "always" ? `${name} is running, and keeps it awake always` : undefined;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

function shortened(lines: string[]): string[] {
  if (lines.length <= MOST_TOLD) return lines;
  return [...lines.slice(0, MOST_TOLD), `and ${lines.length - MOST_TOLD} more`];
}
