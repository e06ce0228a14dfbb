import { processLimit, setProcessLimit } from "./libc.ts";

/**
 * The work's own limit on processes, a little below the one on the whole sandbox. A fork bomb that takes the last
 * process of a sandbox also takes the one that the keeper's runtime needs for its next thread, and without that it
 * aborts, and everything with it. A program may raise its limit again: this is for accidents, the sandbox's own limit
 * is for the rest.
 */
const own = processLimit();
let forWork: { soft: bigint; hard: bigint } | undefined;

export function limitWork(maxProcesses: number | undefined): void {
  if (maxProcesses === undefined || own === undefined || BigInt(maxProcesses) >= own.soft) return;
  forWork = { soft: BigInt(maxProcesses), hard: own.hard };
}

/** Whatever is started inside inherits the limit; ours is as before. */
export function underLimit<T>(start: () => T): T {
  if (forWork === undefined || own === undefined) return start();
  setProcessLimit(forWork);
  try {
    return start();
  } finally {
    setProcessLimit(own);
  }
}
