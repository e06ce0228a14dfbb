import type { ProcessRef } from "../engine/proc-table.ts";

/** One command for a shell. */
export interface ShellOrder {
  readonly text: string;
  /** The value of the marker in the environment of all that it starts. */
  readonly marker: string;
  readonly stdin?: Uint8Array | undefined;
  /** Where to go first, because the directory that the shell was in is gone. */
  readonly cd?: string | undefined;
}

/** How a command ended: with a status; together with its shell; or in a shell that lives but obeys no more. */
export type ShellEnd =
  | { readonly how: "ended"; readonly status: number }
  | { readonly how: "died"; readonly exitCode: number; readonly signal: string | null }
  | { readonly how: "poisoned" }
  /** Nothing was run: the shell could not read the text. */
  | { readonly how: "unread" };

/** Where the state of a rebuilt shell came from. `behind` counts commands whose effect on the state it lacks. */
export interface Rebuilt {
  readonly from: "savepoint" | "checkpoint" | "nothing";
  readonly behind: number;
}

/** What a shell that is started anew begins with: dumped state, and how many commands had ended when it was dumped. */
export interface SavedState {
  readonly state: Buffer;
  readonly commands: number;
}

/**
 * A persistent shell that runs one text after another, and that can always be had again as it was before the text
 * that ended it. Whoever drives it calls, in turn: `start`, then for each command `run` and `settle`; and `rebuild`
 * instead of `settle` after a text that did not end by itself.
 */
export interface SessionShell {
  readonly main: ProcessRef | undefined;
  /** Looked up now. */
  readonly alive: boolean;
  /** Our own processes beside the shell, which a tree kill must leave alone. */
  readonly helpers: readonly ProcessRef[];
  /** Commands whose effects are in the state. */
  readonly commands: number;
  start(saved: SavedState | undefined): Promise<void>;
  run(order: ShellOrder): Promise<ShellEnd>;
  /** Resolves when the state after the last text is safe; false if it could not be made safe, and must be rebuilt. */
  settle(): Promise<boolean>;
  /** Ends what is left of the shell and makes it again, as good as can be; never with part of what the last text did. */
  rebuild(fallback: () => SavedState | undefined): Promise<Rebuilt>;
  /** The state now, written down; `undefined` if nobody is left who knows it. */
  dump(): Promise<SavedState | undefined>;
  /** Lets the shell exit by itself, EXIT trap included. */
  exit(): Promise<void>;
  close(): void;
}
