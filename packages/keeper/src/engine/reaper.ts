import { readdirSync, readFileSync } from "node:fs";
import { isOwnChild, tags } from "./children.ts";
import { reap } from "./libc.ts";
import { tagOf } from "./oom-score.ts";
import { lookAt, type ProcessEntry } from "./proc-table.ts";

// Most children that end are the runtime's own, and a zombie costs nothing for a moment: one look for many.
const GATHER_MS = 100;

/** One that has ended; `marker`: of the run that it came from, if it can be told. */
export interface Orphan {
  readonly entry: ProcessEntry;
  readonly marker: string | undefined;
}

/**
 * Waits for orphans, which the kernel gives to PID 1. The runtime waits only for what it started itself, so without
 * this every orphan would stay a zombie and fill the pids limit. Woken by SIGCHLD; nothing is polled.
 */
export function startReaper(onOrphan: (orphan: Orphan) => void): { close(): void } {
  let timer: Timer | undefined;
  const look = () => {
    timer = undefined;
    for (const pid of childPids()) {
      const entry = isOwnChild(pid) ? undefined : lookAt(pid);
      if (entry?.state !== "Z") continue;
      onOrphan({ entry, marker: tags.ownerOf(tagOf(pid)) });
      reap(pid);
    }
  };
  const wake = () => {
    timer ??= setTimeout(look, GATHER_MS);
  };
  process.on("SIGCHLD", wake);
  wake(); // whatever ended before we listened
  return {
    close() {
      clearTimeout(timer);
      process.off("SIGCHLD", wake);
    },
  };
}

/** Children belong to the thread that they were given to. */
function childPids(): number[] {
  const pids: number[] = [];
  for (const task of readdirSync("/proc/self/task")) {
    const text = readFileSync(`/proc/self/task/${task}/children`, "utf8");
    for (const word of text.split(" ")) if (word !== "") pids.push(Number(word));
  }
  return pids;
}
