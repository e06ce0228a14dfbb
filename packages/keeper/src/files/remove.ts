import {
  FsError,
  namesIn,
  O,
  open,
  type Place,
  removeDirectory,
  resolve,
  stat,
  typeOf,
  unlink,
} from "./fs-calls.ts";
import { openSpot, type Target } from "./paths.ts";
import { Turns } from "./turns.ts";

/** A directory that is not empty goes only with `recursive`. */
export async function deleteFile(target: Target, { recursive }: { recursive: boolean }): Promise<void> {
  using spot = openSpot(target);
  if (spot.name.length === 0) throw new FsError("EBUSY");
  if (typeOf(stat(spot.dirFd, spot.name)) !== "directory") return unlink(spot.dirFd, spot.name);
  if (recursive) await removeTree(spot);
  else removeDirectory(spot.dirFd, spot.name);
}

/** Removes the directories above a path that are empty, up to its root. */
export function deleteEmptyParents({ path, ...rest }: Target & { root: Buffer }): void {
  try {
    for (let end = path.lastIndexOf(0x2f); end > rest.root.length; end = path.lastIndexOf(0x2f, end - 1)) {
      using spot = openSpot({ ...rest, path: path.subarray(0, end) });
      removeDirectory(spot.dirFd, spot.name);
    }
  } catch (error) {
    if (!(error instanceof FsError)) throw error; // something is in it, or it is not there any more
  }
}

/** Removes a file, or a directory with all it has. Symlinks are removed, never followed; what is gone already is fine. */
export async function removeTree({ dirFd, name }: Place, turns = new Turns()): Promise<void> {
  await turns.next();
  try {
    unlink(dirFd, name);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    // Linux says EISDIR of a directory; other file systems may say EPERM, as POSIX has it.
    if (!isCode(error, "EISDIR") && !isCode(error, "EPERM")) throw error;
    await removeDirectoryTree({ dirFd, name }, turns);
  }
}

async function removeDirectoryTree({ dirFd, name }: Place, turns: Turns): Promise<void> {
  {
    const flags = O.RDONLY | O.DIRECTORY | O.NOFOLLOW;
    using dir = open(name, { at: dirFd, flags, resolve: resolve.plainly });
    for (const child of namesIn(dir.fd)) await removeTree({ dirFd: dir.fd, name: child }, turns);
  }
  try {
    removeDirectory(dirFd, name);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof FsError && error.code === code;
}
