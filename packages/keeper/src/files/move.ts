import type { FileInfo } from "@holdfast/protocol";
import { infoOf } from "./describe.ts";
import { FsError, rename, stat } from "./fs-calls.ts";
import { openSpot, type Target } from "./paths.ts";

/** Renames, in one step. Nothing is replaced unless `overwrite`; a symlink is moved itself. */
export function moveFile(from: Target, to: Target, { overwrite }: { overwrite: boolean }): FileInfo {
  using source = openSpot(from);
  using destination = openSpot(to);
  if (source.name.length === 0 || destination.name.length === 0) throw new FsError("EBUSY");
  rename(source, destination, { ifTaken: overwrite ? "replace" : "refuse" });
  return infoOf(to.path, stat(destination.dirFd, destination.name), destination);
}
