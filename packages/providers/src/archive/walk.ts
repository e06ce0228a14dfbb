import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import type { Entry } from "./entry.ts";

/** As long as the kernel takes a path in one piece. */
const MAX_PATH_BYTES = 4095;
/** The event loop is others' too: after so much work it gets its turn. */
const SLICE_MS = 5;

export interface Walked extends Entry {
  /** Where it is on this machine. */
  readonly place: Buffer;
}

/**
 * Everything below `dir`, named as being in `name`, that first; the names of a directory in the order of their bytes.
 * A second name of a file is a hard link to the first. Sockets are left out: nobody listens on a copy.
 */
export async function* walk(dir: string, name: string): AsyncGenerator<Walked> {
  const seen = new Map<string, Buffer>();
  const slice = new TimeSlice();
  const stack: { place: Buffer; path: Buffer }[] = [{ place: Buffer.from(dir), path: Buffer.from(name) }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    await slice.pause();
    if (next.place.length > MAX_PATH_BYTES) throw tooDeep(next.path);
    const stats = lstatSync(next.place);
    const entry = entryOf(next, stats, seen);
    if (entry === undefined) continue;
    yield entry;
    // The last one is taken first.
    if (stats.isDirectory()) stack.push(...childrenOf(next).reverse());
  }
}

function entryOf(
  { place, path }: { place: Buffer; path: Buffer },
  stats: Stats,
  seen: Map<string, Buffer>,
): Walked | undefined {
  const facts = { place, path, mode: stats.mode & 0o7777, mtime: Math.floor(stats.mtimeMs / 1000), size: 0 };
  if (stats.isDirectory()) return { ...facts, type: "directory" };
  if (stats.isSymbolicLink()) {
    // The mode of a link means nothing, and not every file system keeps it.
    return { ...facts, mode: 0o777, type: "symlink", link: readlinkSync(place, { encoding: "buffer" }) };
  }
  if (stats.isFIFO()) return { ...facts, type: "fifo" };
  if (!stats.isFile()) return undefined;
  if (stats.nlink === 1) return { ...facts, type: "file", size: stats.size };
  const key = `${stats.dev}:${stats.ino}`;
  const link = seen.get(key);
  if (link !== undefined) return { ...facts, type: "hardlink", link };
  seen.set(key, path);
  return { ...facts, type: "file", size: stats.size };
}

function childrenOf({ place, path }: { place: Buffer; path: Buffer }): { place: Buffer; path: Buffer }[] {
  const names = readdirSync(place, { encoding: "buffer" }) as unknown as Buffer[];
  const below = (parent: Buffer, name: Buffer) => Buffer.concat([parent, SLASH, name]);
  return names
    .map((name) => Buffer.from(name))
    .sort(Buffer.compare)
    .map((name) => ({ place: below(place, name), path: below(path, name) }));
}

const SLASH = Buffer.from("/");

/** Lets others run when this one has had its time. */
class TimeSlice {
  #since = performance.now();

  async pause(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}

function tooDeep(path: Buffer): HoldfastError {
  const shown = path.toString("utf8").slice(0, 80);
  return new HoldfastError("unsupported", `a path is longer than ${MAX_PATH_BYTES} bytes: ${shown}…`, {
    hint: "No archive can hold it. Move what is so deep, and try again.",
  });
}
