import { type Fd, FsError, makeDirectory, O, open, type Place, resolve } from "./fs-calls.ts";
import { makeDirectoryAt } from "./make-directory.ts";
import { openTarget, type Target } from "./paths.ts";
import type { Pending } from "./pending.ts";
import { removeTree } from "./remove.ts";

/** An empty directory of ours inside the one that its content will be moved into: the same file system for certain. */
export interface Staging extends AsyncDisposable {
  readonly top: Fd;
  readonly into: Fd;
}

/** The directory is made if there is none; with `parents`, those above it, too. Disposing removes what was not moved. */
export async function makeStaging(
  target: Target,
  { pending, parents }: { pending: Pending; parents: boolean },
): Promise<Staging> {
  const into = openOrMake(target, parents);
  const temporary = pending.add(into.fd);
  const place = { dirFd: into.fd, name: temporary.name };
  let top: Fd | undefined;
  const dispose = async () => {
    top?.[Symbol.dispose]();
    // What the work has put in the way stays noted, for the next keeper to remove.
    await removeTree(place).then(temporary.done, () => {});
    into[Symbol.dispose]();
  };
  try {
    makeDirectory(into.fd, temporary.name, 0o700);
    const flags = O.RDONLY | O.DIRECTORY | O.NOFOLLOW;
    top = open(temporary.name, { at: into.fd, flags, resolve: resolve.plainly });
    return { top, into, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** A name somewhere below an open directory, and the directory that it is in; no symlink is on the way. */
export function openPlace(top: Fd, path: Buffer): Place & Disposable {
  const end = path.lastIndexOf(0x2f);
  if (end === -1) return { dirFd: top.fd, name: path, [Symbol.dispose]: () => {} };
  const flags = O.PATH | O.DIRECTORY;
  const dir = open(path.subarray(0, end), { at: top.fd, flags, resolve: resolve.plainly });
  return { dirFd: dir.fd, name: path.subarray(end + 1), [Symbol.dispose]: () => dir[Symbol.dispose]() };
}

function openOrMake(target: Target, parents: boolean): Fd {
  try {
    return openTarget(target, O.RDONLY | O.DIRECTORY);
  } catch (error) {
    if (!(error instanceof FsError && error.code === "ENOENT")) throw error;
    makeDirectoryAt(target, { parents });
    return openTarget(target, O.RDONLY | O.DIRECTORY);
  }
}
