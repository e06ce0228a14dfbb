import { lstatSync, readdirSync, renameSync } from "node:fs";
import { HoldfastError } from "holdfast";

const SLASH = Buffer.from("/");

/**
 * Moves all that is in one directory into another, by the same rule as an upload: a directory that is there keeps what
 * else it has, a file replaces a file, and what cannot be merged is found before anything is moved.
 */
export function mergeInto(from: string, into: string): void {
  merge(Buffer.from(from), Buffer.from(into), () => {});
  merge(Buffer.from(from), Buffer.from(into), renameSync);
}

function merge(from: Buffer, into: Buffer, move: (from: Buffer, to: Buffer) => void): void {
  for (const name of readdirSync(from, { encoding: "buffer" })) {
    const [source, target] = [from, into].map((dir) => Buffer.concat([dir, SLASH, name])) as [Buffer, Buffer];
    const isDirectory = lstatSync(source).isDirectory();
    const found = lstatSync(target, { throwIfNoEntry: false });
    if (found !== undefined && found.isDirectory() !== isDirectory) throw inTheWay(`${target}`);
    if (found !== undefined && isDirectory) merge(source, target, move);
    else move(source, target);
  }
}

export function inTheWay(path: string): HoldfastError {
  return new HoldfastError("already_exists", `${path} is there already, and is of another kind`, {
    hint: "a directory and something else cannot be merged, and no symlink is followed: move it away first",
  });
}
