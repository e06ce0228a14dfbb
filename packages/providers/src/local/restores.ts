import { join } from "node:path";
import { type RestoreProgress, type SandboxRef, sizeOf } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { copyTree } from "./copy-tree.ts";
import { ensureDisk, removeDiskDraft } from "./disk.ts";
import { type Layout, makeLayout } from "./layout.ts";
import type { SandboxLocks } from "./sandbox-locks.ts";
import { partsIn, readSnapshot, snapshotDir } from "./snapshot-dir.ts";
import { namingStorage } from "./storage.ts";

interface Restore {
  readonly done: Promise<void>;
  readonly end: AbortController;
  copiedBytes: number;
  sizeBytes: number;
}

/**
 * Disks that begin with a snapshot. A large one takes longer than one call of `launch` may: it goes on, and the next
 * call waits for the same one.
 */
export class Restores {
  readonly #layout: Layout;
  readonly #locks: SandboxLocks;
  readonly #running = new Map<string, Restore>();

  constructor({ layout, locks }: { layout: Layout; locks: SandboxLocks }) {
    this.#layout = layout;
    this.#locks = locks;
  }

  /** Resolves when the sandbox has its disk. `unavailable` if that takes longer than the caller has time. */
  async until(ref: SandboxRef, snapshotId: string, signal: AbortSignal): Promise<void> {
    const restore = this.#running.get(ref.sandboxId) ?? this.#begin(ref, snapshotId);
    const givenUp = Promise.withResolvers<never>();
    const giveUp = () => givenUp.reject(underWay(snapshotId, restore.copiedBytes));
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      signal.throwIfAborted();
      await Promise.race([restore.done, givenUp.promise]);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** How far the one that is under way is. */
  progress({ sandboxId }: SandboxRef): RestoreProgress | undefined {
    return this.#running.get(sandboxId);
  }

  /** The sandbox is to end: what is half copied is removed. */
  async cancel({ sandboxId }: SandboxRef): Promise<void> {
    const restore = this.#running.get(sandboxId);
    restore?.end.abort();
    await restore?.done.catch(() => undefined);
  }

  #begin(ref: SandboxRef, snapshotId: string): Restore {
    const end = new AbortController();
    const restore = { end, copiedBytes: 0, sizeBytes: 0, done: Promise.resolve() };
    const work = () => this.#restore(ref, snapshotId, restore);
    restore.done = namingStorage(this.#layout.dataDir, () =>
      this.#locks.run(ref.sandboxId, end.signal, work),
    ).finally(() => this.#running.delete(ref.sandboxId));
    // Whoever waits is told; if nobody does any more, the next call tries again.
    restore.done.catch(() => undefined);
    this.#running.set(ref.sandboxId, restore);
    return restore;
  }

  async #restore(ref: SandboxRef, snapshotId: string, restore: Restore): Promise<void> {
    const layout = this.#layout;
    const { signal } = restore.end;
    makeLayout(layout);
    try {
      await ensureDisk(layout, ref, {
        now: Date.now(),
        fill: async ({ dir, uid }) => {
          const { installationId } = ref;
          const found = await readSnapshot(layout, { installationId, snapshotId });
          if (found === undefined) throw gone(snapshotId);
          restore.sizeBytes = sizeOf(found.content).sizeBytes;
          let before = 0;
          for (const part of partsIn(snapshotDir(layout, snapshotId))) {
            const onProgress = (bytes: number): void => {
              restore.copiedBytes = before + bytes;
            };
            await copyTree({ from: part.dir, to: join(dir, part.name), uid, signal, onProgress });
            before = restore.copiedBytes;
          }
        },
      });
    } catch (error) {
      await removeDiskDraft(layout, ref.sandboxId);
      throw error;
    }
  }
}

function underWay(snapshotId: string, copiedBytes: number): HoldfastError {
  const mebibytes = Math.floor(copiedBytes / 1024 ** 2);
  return new HoldfastError("unavailable", `snapshot ${snapshotId} is being copied: ${mebibytes} MiB so far`);
}

function gone(snapshotId: string): HoldfastError {
  return new HoldfastError("launch_failed", `there is no snapshot ${snapshotId} on this machine`, {
    hint: "It was removed by hand, or is on another provider. Make the sandbox from another one.",
    started: "no",
  });
}
