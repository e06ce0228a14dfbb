import { readlinkSync } from "node:fs";
import { lookAt, type ProcessRef } from "../engine/proc-table.ts";

// Most commands are over before the first look. Later looks are rarer: they only shorten a wait that would have no end.
const FIRST_LOOK_MS = 30;
const RAREST_LOOK_MS = 1_000;
// Our own lines take well under a millisecond. A machine that is stalled for this long has other worries.
const OWN_LINES_MS = 3_000;

export interface Watched {
  readonly main: ProcessRef;
  feedName(): string;
  unread(): number;
}

/**
 * Notices two things that a shell cannot report: that it is gone although nobody said so, and that it is poisoned. While
 * a text runs its stdin is never the feed. So a shell whose stdin is the feed is in lines of ours; if it has read them
 * all and sleeps, or stays in them for seconds, then the text has made them mean something else, and no report will come.
 */
export function watch(watched: Watched, on: { gone: () => void; poisoned: () => void }): { stop(): void } {
  let timer: Timer | undefined;
  let wait = FIRST_LOOK_MS;
  let suspicious = 0;
  let inOwnLinesMs = 0;
  const look = () => {
    const entry = lookAt(watched.main.pid);
    if (entry === undefined || entry.startTime !== watched.main.startTime || entry.state === "Z")
      return on.gone();
    const own = stdinOf(watched.main.pid) === watched.feedName();
    suspicious = own && watched.unread() === 0 && entry.state === "S" ? suspicious + 1 : 0;
    inOwnLinesMs = own ? inOwnLinesMs + wait : 0;
    if (suspicious >= 2 || inOwnLinesMs > OWN_LINES_MS) return on.poisoned();
    wait = suspicious > 0 ? FIRST_LOOK_MS : Math.min(wait * 2, RAREST_LOOK_MS);
    timer = setTimeout(look, wait);
  };
  timer = setTimeout(look, wait);
  return { stop: () => clearTimeout(timer) };
}

function stdinOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return undefined;
  }
}
