import { type Checkpoint, readCheckpoint, type SessionFacts, writeCheckpoint } from "./checkpoint.ts";
import type { SavedState, SessionShell } from "./session-shell.ts";

// Soon after a command, but not between two that follow each other at once; and never much later than that.
const QUIET_MS = 100;
const LATEST_MS = 1_000;

/** Keeps a session's state on disk, a little behind its shell. */
export class Checkpointer {
  readonly #options: { facts: SessionFacts; dir: string; shell: SessionShell; now: () => number };
  readonly #cwd: () => string;
  #timer: Timer | undefined;
  #dueSince: number | undefined;
  #writing: Promise<void> = Promise.resolve();
  #writtenCommands: number | undefined;
  #closed = false;

  constructor(options: {
    facts: SessionFacts;
    dir: string;
    shell: SessionShell;
    now: () => number;
    cwd: () => string;
  }) {
    this.#options = options;
    this.#cwd = options.cwd;
  }

  /** The last state that was written. */
  get saved(): SavedState | undefined {
    return readCheckpoint(this.#options.dir)?.saved;
  }

  /** A command has ended: the state will be written when the shell is left alone for a moment. */
  soon(): void {
    if (this.#closed) return;
    const now = this.#options.now();
    this.#dueSince ??= now;
    clearTimeout(this.#timer);
    const wait = Math.max(0, Math.min(QUIET_MS, this.#dueSince + LATEST_MS - now));
    this.#timer = setTimeout(() => void this.flush(), wait);
  }

  /** Writes the state as it is now, if that is not yet done. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#dueSince = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** For a session that has just been made: without a state, a new shell. */
  first(): void {
    this.#put(undefined);
  }

  /** May be called twice. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#closed || this.#writtenCommands === this.#options.shell.commands) return;
    const saved = await this.#options.shell.dump();
    if (saved === undefined || this.#closed) return;
    try {
      this.#put(saved);
      this.#writtenCommands = saved.commands;
    } catch {
      this.soon(); // a full disk: the last checkpoint is still there, and this one is tried again
    }
  }

  #put(saved: SavedState | undefined): void {
    const { facts, dir, now } = this.#options;
    const checkpoint: Checkpoint = { facts, cwd: this.#cwd(), savedAt: now(), saved };
    writeCheckpoint(dir, checkpoint);
  }
}
