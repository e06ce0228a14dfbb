import { tags } from "../engine/children.ts";
import type { Engine } from "../engine/engine.ts";
import { MARKER } from "../engine/environment.ts";
import { tagOf } from "../engine/oom-score.ts";
import { environmentValue, type ProcessEntry, type ProcessRef } from "../engine/proc-table.ts";
import { processesOf } from "../engine/sandbox-processes.ts";
import type { Parts } from "../parts.ts";
import type { SeenProcess } from "./work-done.ts";

/**
 * The sandbox's processes, each with its tree: the marker of the run, session or terminal that it came from, or what it
 * calls itself. Left out are those that must not hold the sandbox awake, and the shells of sessions, whose commands are
 * known without them.
 */
export function lookInside(parts: { engine: Engine; sessions: Parts["sessions"] }): SeenProcess[] {
  const { engine, sessions } = parts;
  const all = new Map(processesOf(engine.boot.sandboxId).map((entry) => [entry.pid, entry]));
  const leaders = new Map([...engine.runs()].map(({ leader, id }) => [leader?.pid, id]));
  const trees = new Map<number, string>();
  const treeOf = (entry: ProcessEntry): string => {
    const top = topOf(entry, all);
    const known = trees.get(top.pid);
    if (known !== undefined) return known;
    const tree = leaders.get(top.pid) ?? originOf(top);
    trees.set(top.pid, tree);
    return tree;
  };
  const shells = new Set(sessions.loaded?.list().flatMap((session) => session.shellProcesses.map(keyOf)));
  return [...all.values()]
    .filter((entry) => !shells.has(keyOf(entry)))
    .map((entry) => ({
      key: keyOf(entry),
      parent: keyOfParent(entry, all),
      tree: treeOf(entry),
      cpuMs: entry.cpuMs,
      waitedCpuMs: entry.waitedCpuMs,
      isAtWork: entry.state === "R" || entry.state === "D",
    }))
    .filter(({ tree }) => engine.records.peek(tree)?.facts.keepsAwake !== "never");
}

/** The one that we, or nobody who lives, started. */
function topOf(entry: ProcessEntry, all: ReadonlyMap<number, ProcessEntry>): ProcessEntry {
  let top = entry;
  for (let parent = all.get(top.parent); parent !== undefined; parent = all.get(top.parent)) top = parent;
  return top;
}

function keyOfParent(entry: ProcessEntry, all: ReadonlyMap<number, ProcessEntry>): string | undefined {
  const parent = all.get(entry.parent);
  return parent === undefined ? undefined : keyOf(parent);
}

function originOf({ pid, name }: ProcessEntry): string {
  return environmentValue(pid, MARKER) ?? tags.ownerOf(tagOf(pid)) ?? `${name} (${pid})`;
}

export function keyOf({ pid, startTime }: ProcessRef): string {
  return `${pid}:${startTime}`;
}
