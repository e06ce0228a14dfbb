import type { Direction } from "./plan.ts";

/** A file that was left as it is, and why. */
export interface Skipped {
  readonly path: string;
  readonly reason: string;
}

/** Which way to sync, and what to leave out. */
export interface SyncOptions {
  /** `up`: the local directory is the model; `down`: the sandbox's is; `both`: what changed on either side. */
  direction?: Direction | undefined;
  /** Whether a deletion on one side is one on the other. Default: false. */
  delete?: boolean | undefined;
  /** Lines as in a .gitignore, on top of those that are there. `.git/` is one of them unless you say `!.git/`. */
  ignore?: string[] | undefined;
  /** Where to remember what was synced. Default: a file in the user's state directory. */
  stateFile?: string | undefined;
  onProgress?: ((progress: { done: number; total: number; path: string }) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** What a sync did. Paths are relative to the two directories. */
export interface SyncResult {
  uploaded: string[];
  downloaded: string[];
  deletedRemote: string[];
  deletedLocal: string[];
  /** Files that are the same on both sides, and were before. */
  unchanged: number;
  /** Changed on both sides: neither was touched. */
  conflicts: Skipped[];
  /** Left as they are, each with the reason: links that lead out, empty directories, what the direction does not allow. */
  skipped: Skipped[];
}
