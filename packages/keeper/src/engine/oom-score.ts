import { openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { codeOf } from "./disk-errors.ts";
import { exitStatusOf } from "./libc.ts";

/**
 * The OOM score adjustment of our children: far above our own, so that when memory runs out the kernel takes the work
 * and not its keeper; plus the tag of their run (tree-tags.ts). A process inherits it from its parent.
 *
 * A child gets its tag with its birth, because what it starts in its first moment must have it: for the start our own
 * score is raised by the tag. But by no more: memory often runs out just when something is started, and if its owner is
 * a file in memory and no program, we would be the biggest there is. So the rest is added the moment after.
 */

/** How many tags there are. A score counts thousandths of the memory limit: the last weighs 5 % of it more than the first. */
export const TAGS = 49;
const RAISE = 500;
const HIGHEST = 1000;

const own = Number(readFileSync("/proc/self/oom_score_adj", "latin1"));
const raised = own + RAISE + TAGS <= HIGHEST ? own + RAISE : own;
let ownFile: number | undefined;

/** Lets children be born with tags. Comes before `becomeUndumpable`, after which the file is not ours to open. */
export function prepareTags(): void {
  if (own + TAGS <= HIGHEST) ownFile = openSync("/proc/self/oom_score_adj", "r+");
}

/** Starts a child that has the tag from its birth; unprepared, from the moment after. */
export function startTagged<T extends { readonly pid: number }>(tag: number | undefined, start: () => T): T {
  const child = ownFile === undefined ? start() : underScore(ownFile, own + (tag ?? 0), start);
  if (exitStatusOf(child.pid) === undefined) raiseScore(child.pid, tag);
  return child;
}

/** Makes a child, and all that it will start, more likely to be taken than us. */
function raiseScore(pid: number, tag = 0): void {
  // A child that is just being loaded may be as undumpable as we are, and its file not ours to open yet.
  if (writeScore(pid, raised + tag) === "EACCES") setTimeout(() => writeScore(pid, raised + tag), LOADED_MS);
}

// Loading takes microseconds; no process number is used again in this time.
const LOADED_MS = 1;

/** The code of what went wrong. Nothing is lost then: the kernel chooses by size alone. */
function writeScore(pid: number, score: number): string | undefined {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

/** The tag of a process, if its score has one. */
export function tagOf(pid: number): number | undefined {
  const score = readScore(pid);
  for (const base of [raised, own]) if (score > base && score <= base + TAGS) return score - base;
  return undefined;
}

function underScore<T>(file: number, score: number, work: () => T): T {
  writeSync(file, String(score));
  try {
    return work();
  } finally {
    writeSync(file, String(own));
  }
}

function readScore(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1"));
  } catch {
    return Number.NaN; // it has ended
  }
}
