import { startTagged } from "./oom-score.ts";
import { underLimit } from "./process-limit.ts";
import { TagPool } from "./tree-tags.ts";

/**
 * The keeper's own children. The runtime waits for these itself; whatever else becomes a child of PID 1 is an orphan
 * that the reaper waits for. So everything in the keeper that starts a program says so here, in the same turn of the
 * event loop: a status that the reaper took is lost to the runtime.
 */
const own = new Set<number>();
/** Which run an orphan is of. */
export const tags = new TagPool();

interface OwnChild {
  readonly pid: number;
  readonly exited: Promise<number>;
}

/** Starts a program; with the marker of the run that it leads, whatever comes of it can be known as the run's. */
export function startLeader<T extends OwnChild>(marker: string | undefined, start: () => T): T {
  const tag = process.pid === 1 && marker !== undefined ? tags.take(marker) : undefined;
  try {
    const child = underLimit(() => startTagged(tag, start));
    remember(child, () => tags.ended(tag));
    return child;
  } catch (error) {
    tags.ended(tag);
    throw error;
  }
}

export function isOwnChild(pid: number): boolean {
  return own.has(pid);
}

function remember(child: OwnChild, onEnd: () => void): void {
  own.add(child.pid);
  const forget = () => {
    own.delete(child.pid);
    onEnd();
  };
  child.exited.then(forget, forget);
}
