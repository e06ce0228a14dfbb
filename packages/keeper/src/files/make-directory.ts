import type { FileInfo } from "@holdfast/protocol";
import { infoOf } from "./describe.ts";
import { FsError, makeDirectory, stat, statIfAny, typeOf } from "./fs-calls.ts";
import { openSpot, type Target } from "./paths.ts";

const NEW_DIRECTORY_MODE = 0o755;

/** With `parents`, one that is there already is fine, and those on the way are made. */
export function makeDirectoryAt(
  target: Target,
  { parents, mode = NEW_DIRECTORY_MODE }: { parents: boolean; mode?: number | undefined },
): FileInfo {
  if (parents) makeParents(target);
  using spot = openSpot(target);
  try {
    if (spot.name.length > 0) makeDirectory(spot.dirFd, spot.name, mode);
  } catch (error) {
    if (!parents || !isTaken(error) || !isDirectory(target)) throw error;
  }
  return infoOf(target.path, stat(spot.dirFd, spot.name), spot);
}

/** Does the work, and if a directory above the path is missing, makes it and does it again: mostly they are there. */
export function withParents<T>(target: Target, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isMissing(error)) throw error;
    makeParents(target);
    return work();
  }
}

/** Makes the directories above a path that are missing. */
export function makeParents(target: Target): void {
  const { path, root } = target;
  const end = path.lastIndexOf(0x2f);
  if (end <= 0 || (root !== undefined && end <= root.length)) return;
  const parent = { ...target, path: path.subarray(0, end) };
  if (isDirectory(parent)) return;
  makeParents(parent);
  using spot = openSpot(parent);
  try {
    makeDirectory(spot.dirFd, spot.name, NEW_DIRECTORY_MODE);
  } catch (error) {
    if (!isTaken(error)) throw error; // somebody was faster, or it is no directory: the next step says which
  }
}

/** Also what a symlink leads to. */
function isDirectory(target: Target): boolean {
  try {
    using spot = openSpot({ ...target, path: Buffer.concat([target.path, Buffer.from("/.")]) });
    const found = statIfAny(spot.dirFd, Buffer.alloc(0));
    return found !== undefined && typeOf(found) === "directory";
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof FsError && error.code === "ENOENT";
}

function isTaken(error: unknown): boolean {
  return error instanceof FsError && error.code === "EEXIST";
}
