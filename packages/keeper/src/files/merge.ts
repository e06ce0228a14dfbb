import { HoldfastError } from "@holdfast/protocol";
import {
  FsError,
  namesIn,
  O,
  open,
  type Place,
  rename,
  resolve,
  stat,
  statIfAny,
  typeOf,
} from "./fs-calls.ts";
import { Turns } from "./turns.ts";

/**
 * Moves all that is in one directory into another. A directory that is there already keeps what else it has; a file is
 * replaced by one rename, so it is the old one or the new. What cannot be merged is found before anything is moved.
 */
export async function mergeInto(from: number, into: number): Promise<void> {
  const turns = new Turns();
  await merge({ from, into, path: "", turns, move: () => {} });
  await merge({ from, into, path: "", turns, move: moveOver });
}

interface Merge {
  readonly from: number;
  readonly into: number;
  /** Where we are, for people. */
  readonly path: string;
  readonly turns: Turns;
  move(from: Place, to: Place): void;
}

async function merge({ from, into, path, turns, move }: Merge): Promise<void> {
  for (const name of namesAgain(from)) {
    await turns.next();
    const here = path === "" ? `${name}` : `${path}/${name}`;
    const isDirectory = typeOf(stat(from, name)) === "directory";
    const found = statIfAny(into, name);
    const takenBy = found === undefined ? undefined : typeOf(found);
    if (takenBy !== undefined && (takenBy === "directory") !== isDirectory) throw cannot(here, takenBy);
    if (takenBy === undefined || !isDirectory) {
      move({ dirFd: from, name }, { dirFd: into, name });
      continue;
    }
    const flags = O.RDONLY | O.DIRECTORY | O.NOFOLLOW;
    using source = open(name, { at: from, flags, resolve: resolve.plainly });
    using destination = open(name, { at: into, flags, resolve: resolve.plainly });
    await merge({ from: source.fd, into: destination.fd, path: here, turns, move });
  }
}

/** A directory that somebody has made in this moment is not replaced: the kernel refuses. */
function moveOver(from: Place, to: Place): void {
  try {
    rename(from, to, { ifTaken: "replace" });
  } catch (error) {
    if (error instanceof FsError && ["ENOTEMPTY", "EISDIR", "ENOTDIR", "EEXIST"].includes(error.code))
      throw cannot(`${Buffer.from(to.name)}`, "directory");
    throw error;
  }
}

/** A descriptor remembers how far it was read; an own one begins at the beginning. */
function namesAgain(dirFd: number): Buffer[] {
  const flags = O.RDONLY | O.DIRECTORY;
  using dir = open(Buffer.from("."), { at: dirFd, flags, resolve: resolve.plainly });
  return namesIn(dir.fd);
}

function cannot(path: string, takenBy: string): HoldfastError {
  return new HoldfastError("wrong_state", `${path} is there already, as a ${takenBy}`, {
    hint: "a directory and something else cannot be merged, and no symlink is followed: move it away first",
    details: { path },
  });
}
