import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { isRoot } from "./host-user.ts";

/** Who may do what, exactly, whatever umask the server was started with; and whose it is, which only root can say. */
export interface Ownership {
  readonly mode: number;
  readonly uid?: number;
}

// At once and not in a thread of the runtime's: a launch makes some twenty of them, and to wake one takes ten times as
// long as the call. They are where the database is, which is written in the same way.

/** May be called twice. */
export function makeDir(path: string, ownership: Ownership): void {
  mkdirSync(path, { recursive: true, mode: ownership.mode });
  give(path, ownership);
}

/** For a reader that is started afterwards; never wider than asked for, not even for a moment. */
export function writeOwned(path: string, content: string | Uint8Array, ownership: Ownership): void {
  writeFileSync(path, content, { mode: ownership.mode });
  give(path, ownership);
}

/** May be called twice. */
export function give(path: string, { mode, uid }: Ownership): void {
  chmodSync(path, mode);
  if (uid !== undefined && isRoot()) chownSync(path, uid, uid);
}
