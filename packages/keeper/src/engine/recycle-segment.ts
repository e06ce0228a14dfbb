import { closeSync, constants, fstatSync, openSync, renameSync } from "node:fs";

// O_NONBLOCK and O_NOFOLLOW: the work inside may have put a pipe or a link where the segment was.
const WRITE = constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The segments that somebody has open, and how many do. */
const readers = new Map<string, number>();

/** Keeps a segment as it is while it is read: also one that the ring drops meanwhile. Call what it returns, once. */
export function keepForReading(path: string): () => void {
  readers.set(path, (readers.get(path) ?? 0) + 1);
  return () => {
    const left = (readers.get(path) ?? 1) - 1;
    if (left > 0) readers.set(path, left);
    else readers.delete(path);
  };
}

/**
 * Lets the ring's oldest segment become its newest, to be written from its beginning: what a file system does to give
 * pages and blocks back and to find new ones costs three times what the writing does. The frames that are still in it
 * have offsets from before the segment, so nobody takes them for new ones; and a frame that a killed keeper, or a power
 * failure, left half new and half old does not fit its check. `undefined` if it is read, or not a file of ours alone
 * any more.
 */
export function recycleSegment({ from, to }: { from: string; to: string }): number | undefined {
  if (readers.has(from)) return undefined;
  let fd: number | undefined;
  try {
    fd = openSync(from, WRITE);
    const found = fstatSync(fd);
    if (found.isFile() && found.nlink === 1) {
      renameSync(from, to);
      return fd;
    }
  } catch {
    // The work can take anything away, or put something else there: then a new segment is made.
  }
  if (fd !== undefined) closeSync(fd);
  return undefined;
}
