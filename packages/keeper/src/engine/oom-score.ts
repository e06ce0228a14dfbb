import { openSync, readFileSync, writeFileSync, writeSync } from "node:fs";

/**
 * The OOM score adjustment of our children: far above our own, so that when memory runs out the kernel takes the work
 * and not its keeper; plus the tag of their run (tree-tags.ts). A process inherits it from its parent.
 *
 * A child gets it with its birth: what it starts in its first moment must have it, and a moment later the kernel may
 * refuse us the file, because a child that is just being loaded is as undumpable as we are. So our own score is raised
 * for the half millisecond of the start; even then the work, which has the same score and the memory, comes first.
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

/** Starts a child that has its score and tag from its birth; unprepared, from the moment after. */
export function startTagged<T extends { readonly pid: number }>(tag: number | undefined, start: () => T): T {
  if (ownFile !== undefined) return underScore(ownFile, raised + (tag ?? 0), start);
  const child = start();
  raiseScore(child.pid, tag);
  return child;
}

/** Makes a child, and all that it will start, more likely to be taken than us. */
export function raiseScore(pid: number, tag = 0): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(raised + tag));
  } catch {
    // Already dead, or a host that forbids it: the kernel then chooses by size alone.
  }
}

/** The tag of a process, if its score has one. */
export function tagOf(pid: number): number | undefined {
  const score = readScore(pid);
  return score > raised && score <= raised + TAGS ? score - raised : undefined;
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
