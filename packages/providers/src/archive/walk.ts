import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import type { TarEntry } from "@holdfast/protocol/tar";
import { TimeSlice } from "./time-slice.ts";

/** As long as the kernel takes a path in one piece. */
export const MAX_PATH_BYTES = 4095;

export interface Walked extends TarEntry {
  /** Where it is on this machine. */
  readonly place: Buffer;
}

/**
 * Everything below `dir`, named as being in `name`, that first; the names of a directory in the order of their bytes.
 * A second name of a file is a link to the first. Sockets and pipes are left out: nobody is at the other end of a copy.
 */
export async function* walk(dir: string, name: string): AsyncGenerator<Walked> {
  const seen = new Map<string, Buffer>();
  const slice = new TimeSlice();
  const top = Buffer.from(name);
  const stack: { place: Buffer; path: Buffer }[] = [{ place: Buffer.from(dir), path: top }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    await slice.pause();
    if (next.place.length > MAX_PATH_BYTES) throw tooDeep(next.path);
    const stats = lstatSync(next.place);
    const entry = entryOf(next, stats, seen);
    if (entry === undefined) continue;
    yield next.path.equals(top) ? { ...entry, ...OF_THE_TOP } : entry;
    // The last one is taken first.
    if (stats.isDirectory()) stack.push(...childrenOf(next).reverse());
  }
}

function entryOf(
  { place, path }: { place: Buffer; path: Buffer },
  stats: Stats,
  seen: Map<string, Buffer>,
): Walked | undefined {
  const mtime = Math.floor(stats.mtimeMs / 1000);
  const facts = { place, path, mode: stats.mode & 0o7777, mtime, sizeBytes: 0, target: NO_TARGET };
  if (stats.isDirectory()) return { ...facts, type: "directory" };
  if (stats.isSymbolicLink()) {
    // The mode of a link means nothing, and not every file system keeps it.
    return { ...facts, mode: 0o777, type: "symlink", target: readlinkSync(place, { encoding: "buffer" }) };
  }
  if (!stats.isFile()) return undefined;
  const { size: sizeBytes } = stats;
  if (stats.nlink === 1) return { ...facts, type: "file", sizeBytes };
  const key = `${stats.dev}:${stats.ino}`;
  const target = seen.get(key);
  if (target !== undefined) return { ...facts, type: "link", target };
  seen.set(key, path);
  return { ...facts, type: "file", sizeBytes };
}

/** Its mode and time are the provider's business: it gives them to a disk that it makes, or opens up again. */
const OF_THE_TOP = { mode: 0o700, mtime: 0 };
const NO_TARGET = new Uint8Array(0);

function childrenOf({ place, path }: { place: Buffer; path: Buffer }): { place: Buffer; path: Buffer }[] {
  const names = readdirSync(place, { encoding: "buffer" }) as unknown as Buffer[];
  const below = (parent: Buffer, name: Buffer) => Buffer.concat([parent, SLASH, name]);
  return names
    .map((name) => Buffer.from(name))
    .sort(Buffer.compare)
    .map((name) => ({ place: below(place, name), path: below(path, name) }));
}

const SLASH = Buffer.from("/");

function tooDeep(path: Buffer): HoldfastError {
  const shown = path.toString("utf8").slice(0, 80);
  return new HoldfastError("unsupported", `a path is longer than ${MAX_PATH_BYTES} bytes: ${shown}…`, {
    hint: "No archive can hold it. Move what is so deep, and try again.",
  });
}
