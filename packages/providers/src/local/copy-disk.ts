import type { CopyOptions, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { copyTree, diskUsage, sharesBlocks } from "./copy-tree.ts";
import { type Disk, readDisk } from "./disk.ts";
import { SNAPSHOT_UID } from "./host-user.ts";
import type { Layout } from "./layout.ts";
import { partsIn } from "./snapshot-dir.ts";
import { standingStill } from "./stand-still.ts";

/** The disk of a sandbox into a draft, while everything of it stands still. */
export async function copyDisk(
  layout: Layout,
  of: SandboxRef,
  draft: string,
  options: CopyOptions,
): Promise<void> {
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

function noDisk({ sandboxId }: SandboxRef): HoldfastError {
  return new HoldfastError("wrong_state", `sandbox ${sandboxId} has no disk yet`, {
    hint: "Start it once, then there is something to copy.",
    started: "no",
  });
}
