import type { CopyOptions, SandboxRef, SnapshotContent, SnapshotRef, SnapshotVault } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { archiveOf } from "../archive/export.ts";
import { importInto } from "../archive/import.ts";
import { measure } from "../archive/pack.ts";
import { syncTree } from "./copy-tree.ts";
import { draftedDisks, readDisk, removeDiskDraft } from "./disk.ts";
import { freeUid, isRoot, SNAPSHOT_UID } from "./host-user.ts";
import type { Layout } from "./layout.ts";
import type { SandboxLocks } from "./sandbox-locks.ts";
import {
  deleteSnapshot,
  draftDir,
  draftedSnapshots,
  listSnapshots,
  makeSnapshot,
  partsIn,
  readSnapshot,
  removeSnapshotDraft,
  snapshotDir,
} from "./snapshot-dir.ts";
import { namingStorage } from "./storage.ts";

/** What differs from one backend to another. */
export interface SnapshotSource {
  readonly layout: Layout;
  readonly locks: SandboxLocks;
  /** Puts what is on a sandbox's disk into the parts of a draft, as of one moment. Under the sandbox's own lock. */
  copyDisk(of: SandboxRef, draft: string, options: CopyOptions): Promise<void>;
  /** Undoes what an interrupted copy has left beside its draft. */
  letGo?(draft: string): Promise<void>;
}

/** Copies of disks as directories in the data dir. */
export function createSnapshotVault(source: SnapshotSource): SnapshotVault {
  const { layout, locks } = source;
  const alone = <T>(snapshotId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    namingStorage(layout.dataDir, () => locks.run(lockOf(snapshotId), signal, work));
  return {
    make: (ref, of, note, options) =>
      alone(ref.snapshotId, options.signal, async () => {
        const done = await readSnapshot(layout, ref);
        if (done !== undefined) return done.content;
        return makeSnapshot(layout, ref, note, async (draft) => {
          const { signal } = options;
          // The sandbox's own lock: nothing starts on the disk meanwhile, and nobody removes it.
          await locks.run(of.sandboxId, signal, () => source.copyDisk(of, draft, options));
          return concluded(draft, options);
        });
      }),
    remove: (ref, signal) =>
      alone(ref.snapshotId, signal, async () => {
        return { state: "absent", detail: await deleteSnapshot(layout, ref) };
      }),
    async discover(signal) {
      signal.throwIfAborted();
      return listSnapshots(layout);
    },
    async export(ref, signal) {
      signal.throwIfAborted();
      const found = await readSnapshot(layout, ref);
      if (found === undefined) throw notHere(ref);
      return archiveOf(found, partsIn(snapshotDir(layout, ref.snapshotId)));
    },
    import: (ref, archive, note, options) =>
      alone(ref.snapshotId, options.signal, () =>
        makeSnapshot(layout, ref, note, async (draft) => {
          const uid = isRoot() ? SNAPSHOT_UID : undefined;
          const content = await importInto(draft, archive, { ...options, trees: partsIn(draft), uid });
          await syncTree(draft);
          return content;
        }),
      ),
    async removeDrafts() {
      // Whoever makes one holds its lock, and a lock ends with its process.
      for (const id of await draftedSnapshots(layout))
        await locks.runIfFree(lockOf(id), async () => {
          await source.letGo?.(draftDir(layout, id));
          await removeSnapshotDraft(layout, id);
        });
      for (const id of await draftedDisks(layout)) await locks.runIfFree(id, () => forgetDraft(layout, id));
    },
  };
}

/** No sandbox can be called so. */
function lockOf(snapshotId: string): string {
  return `snapshot ${snapshotId}`;
}

async function forgetDraft(layout: Layout, sandboxId: string): Promise<void> {
  await removeDiskDraft(layout, sandboxId);
  if ((await readDisk(layout, sandboxId)) === undefined) await freeUid(layout, sandboxId);
}

/** What was copied, and that it is on the disk. */
async function concluded(draft: string, { checksum, signal }: CopyOptions): Promise<SnapshotContent> {
  const content = await measure(partsIn(draft), { checksum, signal });
  // One without a checksum is for this moment only.
  if (checksum) await syncTree(draft);
  return content;
}

function notHere({ snapshotId }: SnapshotRef): HoldfastError {
  return new HoldfastError("not_found", `there is no snapshot ${snapshotId} on this machine`, {
    hint: "It is being made or removed, or was removed by hand.",
  });
}
