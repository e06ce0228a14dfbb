import type { CopyOptions, SandboxRef, SnapshotContent, SnapshotRef, SnapshotVault } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { archiveOf } from "../archive/export.ts";
import { importInto } from "../archive/import.ts";
import { measure } from "../archive/pack.ts";
import { copyTree, diskUsage, sharesBlocks, syncTree } from "./copy-tree.ts";
import { type Disk, draftedDisks, readDisk, removeDiskDraft } from "./disk.ts";
import { freeUid, isRoot, SNAPSHOT_UID } from "./host-user.ts";
import type { Layout } from "./layout.ts";
import type { SandboxLocks } from "./sandbox-locks.ts";
import {
  deleteSnapshot,
  draftedSnapshots,
  listSnapshots,
  makeSnapshot,
  partsIn,
  readSnapshot,
  removeSnapshotDraft,
  snapshotDir,
} from "./snapshot-dir.ts";
import { standingStill } from "./stand-still.ts";
import { namingStorage } from "./storage.ts";

/** Copies of disks as directories beside them. */
export function createSnapshotVault({
  layout,
  locks,
}: {
  layout: Layout;
  locks: SandboxLocks;
}): SnapshotVault {
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
          await locks.run(of.sandboxId, signal, () => copyDisk(layout, of, draft, options));
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
        await locks.runIfFree(lockOf(id), () => removeSnapshotDraft(layout, id));
      for (const id of await draftedDisks(layout)) await locks.runIfFree(id, () => forgetDraft(layout, id));
    },
  };
}

/** No sandbox can be called so. */
function lockOf(snapshotId: string): string {
  return `snapshot ${snapshotId}`;
}

async function copyDisk(layout: Layout, of: SandboxRef, draft: string, options: CopyOptions): Promise<void> {
  const { signal } = options;
  const disk = await readDisk(layout, of.sandboxId);
  if (disk === undefined || disk.ref.installationId !== of.installationId) throw noDisk(of);
  await assertRoom(layout, disk, options.roomBytes);
  await standingStill(of, { layout, signal }, async () => {
    let before = 0;
    let copied = 0;
    for (const [i, { dir: to }] of partsIn(draft).entries()) {
      const from = partsIn(disk.dir)[i]?.dir ?? "";
      const onProgress = (bytes: number): void => {
        copied = before + bytes;
        options.onProgress(copied);
      };
      await copyTree({ from, to, uid: SNAPSHOT_UID, onProgress, signal });
      before = copied;
    }
  });
}

/** Nothing is copied where it would not fit; copies that share blocks need next to nothing. */
async function assertRoom(layout: Layout, disk: Disk, roomBytes: number): Promise<void> {
  const wanted = await diskUsage(partsIn(disk.dir).map(({ dir }) => dir));
  if (wanted <= roomBytes || (await sharesBlocks(layout.snapshots))) return;
  throw new HoldfastError(
    "capacity_exhausted",
    `there is no room for a copy of ${wanted} bytes: ${Math.max(0, Math.floor(roomBytes))} may be used`,
    {
      hint: "delete snapshots or sandboxes that are not needed (`holdfast snapshot ls`), or put the data dir on XFS or Btrfs, where copies share blocks",
      details: { resource: "disk", wantedBytes: wanted, roomBytes },
      started: "no",
    },
  );
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

function noDisk({ sandboxId }: SandboxRef): HoldfastError {
  return new HoldfastError("wrong_state", `sandbox ${sandboxId} has no disk yet`, {
    hint: "Start it once, then there is something to copy.",
    started: "no",
  });
}
