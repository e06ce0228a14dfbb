/**
 * Which work was done inside between two looks at the sandbox's processes. The kernel keeps no history: a process that
 * ended is gone, but its parent has its CPU once it has waited for it.
 */

export interface SeenProcess {
  /** Its number and start time, which no other has. */
  readonly key: string;
  /** The key of its parent, if that is one of the sandbox's. */
  readonly parent: string | undefined;
  /** What it came from: everything that one run, session or terminal started is one tree. */
  readonly tree: string;
  readonly cpuMs: number;
  readonly waitedCpuMs: number;
  /** On a CPU, or waiting for its disk, at the moment of the look. */
  readonly isAtWork: boolean;
}

export interface Look {
  readonly at: number;
  readonly processes: readonly SeenProcess[];
}

export interface WorkDone {
  readonly tree: string;
  readonly cpuMs: number;
}

/** Below this a program did no more than look at a clock: the kernel counts in steps of 10 ms. */
export const LEAST_MS = 50;
// An idle dev server with its file watchers takes 0.1 to 0.5 % of one CPU, a build that waits for a network still 5 %.
const TRACE = 0.01;

/**
 * Trees that did more than a trace. The trace is a share of the time since the last look, but of no more than a
 * lifetime: a program that began to work an hour ago must not be judged by the day that it slept before. And one that
 * is at work at this very moment counts with little.
 */
export function workDone(before: Look, now: Look, options: { lifetimeMs: number }): WorkDone[] {
  const traceMs = Math.max(LEAST_MS, TRACE * Math.min(now.at - before.at, options.lifetimeMs));
  const atWork = new Set(now.processes.filter(({ isAtWork }) => isAtWork).map(({ tree }) => tree));
  const used = [...cpuByTree(before, now)].map(([tree, cpuMs]) => ({ tree, cpuMs }));
  return used.filter(({ tree, cpuMs }) => cpuMs > (atWork.has(tree) ? LEAST_MS : traceMs));
}

function cpuByTree(before: Look, now: Look): Map<string, number> {
  const earlier = new Map(before.processes.map((process) => [process.key, process]));
  const counted = countedBefore(earlier, new Set(now.processes.map(({ key }) => key)));
  const used = new Map<string, number>();
  for (const { key, tree, cpuMs, waitedCpuMs } of now.processes) {
    const then = earlier.get(key) ?? { cpuMs: 0, waitedCpuMs: 0 };
    const waitedMs = waitedCpuMs - then.waitedCpuMs - (counted.get(key) ?? 0);
    used.set(tree, (used.get(tree) ?? 0) + cpuMs - then.cpuMs + Math.max(0, waitedMs));
  }
  return used;
}

/** What ended meanwhile left to the nearest one above that lives: with it, what it had used before the earlier look. */
function countedBefore(
  earlier: ReadonlyMap<string, SeenProcess>,
  living: ReadonlySet<string>,
): Map<string, number> {
  const counted = new Map<string, number>();
  for (const { key, parent, cpuMs, waitedCpuMs } of earlier.values()) {
    if (living.has(key)) continue;
    let heir = parent;
    while (heir !== undefined && !living.has(heir)) heir = earlier.get(heir)?.parent;
    if (heir !== undefined) counted.set(heir, (counted.get(heir) ?? 0) + cpuMs + waitedCpuMs);
  }
  return counted;
}
