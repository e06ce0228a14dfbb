import { writeFileSync } from "node:fs";

/**
 * The keeper's own children. The runtime waits for these itself; whatever else becomes a child of PID 1 is an orphan
 * that the reaper waits for. So everything in the keeper that starts a program says so here, in the same turn of the
 * event loop: a status that the reaper took is lost to the runtime.
 */
const own = new Set<number>();

// Far above the keeper's own 0: when memory runs out, the kernel takes the work and not its keeper. What a program
// starts inherits it.
const CHILD_OOM_SCORE = "500";

export function registerOwnChild(child: { readonly pid: number; readonly exited: Promise<number> }): void {
  own.add(child.pid);
  preferForOom(child.pid);
  const forget = () => own.delete(child.pid);
  child.exited.then(forget, forget);
}

export function isOwnChild(pid: number): boolean {
  return own.has(pid);
}

function preferForOom(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, CHILD_OOM_SCORE);
  } catch {
    // Already dead, or a host that forbids it: the kernel then chooses by size alone.
  }
}
