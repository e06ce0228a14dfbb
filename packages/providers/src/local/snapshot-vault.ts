import type { CopyOptions, SandboxRef, SnapshotContent, SnapshotRef, SnapshotVault } from "@holdfast/core";
import { HoldfastError, type SnapshotPart } from "@holdfast/protocol";
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
  hasSnapshot,
  listSnapshots,
  makeSnapshot,
  partsIn,
  readSnapshot,
  removeSnapshotDraft,
  snapshotDir,
} from "./snapshot-dir.ts";
import { namingStorage } from "./storage.ts";

/** To remove what a copy that failed keeps elsewhere. */
const UNDO_MS = 10_000;

/** What differs from one backend to another. */
export interface SnapshotSource {
  readonly layout: Layout;
  readonly locks: SandboxLocks;
  /**
   * Puts what is on a sandbox's disk into the parts of a draft, as of one moment. Under the sandbox's own lock. Gives
   * what it keeps elsewhere, under the snapshot's id.
   */
  copyDisk(of: SandboxRef, draft: Draft, options: CopyOptions): Promise<readonly SnapshotPart[]>;
  /** Undoes what an interrupted copy has left beside its draft. */
  letGo?(draft: string): Promise<void>;
  readonly elsewhere?: Elsewhere;
}

export interface Draft {
  readonly dir: string;
  readonly snapshotId: string;
}

/** What of snapshots is not in their directories. */
export interface Elsewhere {
  /** The ids of the snapshots of which there is something, whole or not. */
  list(signal: AbortSignal): Promise<readonly string[]>;
  /** Says what was seen afterwards. What still uses it may keep it there. May be called twice. */
  remove(snapshotId: string, signal: AbortSignal): Promise<string>;
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
        const { snapshotId } = ref;
        try {
          return await makeSnapshot(layout, ref, note, async (dir) => {
            const { signal } = options;
            // The sandbox's own lock: nothing starts on the disk meanwhile, and nobody removes it.
            const elsewhere = await locks.run(of.sandboxId, signal, () =>
              source.copyDisk(of, { dir, snapshotId }, options),
            );
            return concluded(dir, elsewhere, options);
          });
        } catch (error) {
          // What does not work now is done by `removeDrafts`.
          await source.elsewhere?.remove(snapshotId, AbortSignal.timeout(UNDO_MS)).catch(() => undefined);
          throw error;
        }
      }),
    remove: (ref, signal) =>
      alone(ref.snapshotId, signal, async () => {
        const detail = await deleteSnapshot(layout, ref);
        if (source.elsewhere === undefined || (await hasSnapshot(layout, ref.snapshotId)))
          return { state: "absent", detail };
        const elsewhere = await source.elsewhere.remove(ref.snapshotId, signal);
        return { state: "absent", detail: `${detail}; ${elsewhere}` };
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
    async removeDrafts(signal) {
      // Whoever makes one holds its lock, and a lock ends with its process.
      for (const id of await draftedSnapshots(layout))
        await locks.runIfFree(lockOf(id), async () => {
          await source.letGo?.(draftDir(layout, id));
          await removeSnapshotDraft(layout, id);
        });
      for (const id of await draftedDisks(layout)) await locks.runIfFree(id, () => forgetDraft(layout, id));
      await removeUnused(source, signal).catch((error: unknown) => {
        // Nobody answers there now: the next look comes again.
        if (!(error instanceof HoldfastError && error.code === "provider_unavailable")) throw error;
      });
    },
  };
}

/** What is kept elsewhere of snapshots that are not there, or not any more. Nothing of those that are being made. */
export async function removeUnused(
  { layout, locks, elsewhere }: Pick<SnapshotSource, "layout" | "locks" | "elsewhere">,
  signal: AbortSignal,
): Promise<void> {
  for (const id of (await elsewhere?.list(signal)) ?? [])
    await locks.runIfFree(lockOf(id), async () => {
      if (!(await hasSnapshot(layout, id))) await elsewhere?.remove(id, signal);
    });
}

/** No sandbox can be called so. */
function lockOf(snapshotId: string): string {
  return `snapshot ${snapshotId}`;
}

async function forgetDraft(layout: Layout, sandboxId: string): Promise<void> {
  await removeDiskDraft(layout, sandboxId);
  if ((await readDisk(layout, sandboxId)) === undefined) freeUid(layout, sandboxId);
}

/** What was copied, and that it is on the disk. */
async function concluded(
  draft: string,
  elsewhere: readonly SnapshotPart[],
  { checksum, signal }: CopyOptions,
): Promise<SnapshotContent> {
  const content = await measure(partsIn(draft), { checksum, signal });
  // One without a checksum is for this moment only.
  if (checksum) await syncTree(draft);
  return { ...content, parts: [...content.parts, ...elsewhere] };
}

function notHere({ snapshotId }: SnapshotRef): HoldfastError {
  return new HoldfastError("not_found", `there is no snapshot ${snapshotId} on this machine`, {
    hint: "It is being made or removed, or was removed by hand.",
  });
}
