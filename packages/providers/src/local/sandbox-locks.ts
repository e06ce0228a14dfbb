import { existsSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import { withFileLock } from "./file-lock.ts";
import { type Layout, makeLayout } from "./layout.ts";

/** For who only looks in: nobody holds a lock without being at work. */
const GIVE_UP_MS = 50;

/** Lets one at a time work on a sandbox: in this process in the order of asking, and of all processes one. */
export class SandboxLocks {
  readonly #layout: Layout;
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  async run<T>(sandboxId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(sandboxId) ?? Promise.resolve();
    const locked = () => this.#locked(sandboxId, signal, work);
    const mine = before.then(locked, locked);
    this.#last.set(sandboxId, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(sandboxId) === mine) this.#last.delete(sandboxId);
    }
  }

  /** Does it, unless somebody is at work there. */
  async runIfFree(sandboxId: string, work: () => Promise<void>): Promise<void> {
    if (this.#last.has(sandboxId)) return;
    try {
      await this.run(sandboxId, AbortSignal.timeout(GIVE_UP_MS), work);
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "unavailable")) throw error;
    }
  }

  async #locked<T>(sandboxId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (!existsSync(this.#layout.locks)) makeLayout(this.#layout);
    return withFileLock({ file: this.#layout.locks, key: sandboxId, mode: "alone", signal }, work);
  }
}
