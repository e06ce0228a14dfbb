import { readSync } from "node:fs";
import { paddingOf, TAR_END, type TarEntry, tarHeader } from "@holdfast/protocol/tar";
import { readAt } from "./describe.ts";
import {
  dataIn,
  type Fd,
  FsError,
  namesIn,
  O,
  open,
  readLink,
  resolve,
  type Stat,
  stat,
  statIfAny,
  typeOf,
} from "./fs-calls.ts";
import { openSpot, openTarget, type Target } from "./paths.ts";
import { Turns } from "./turns.ts";

const PIECE_BYTES = 512 * 1024;
// Smaller files are read on this thread: to hand them to another would cost more.
const SMALL_FILE_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Opens what is to be packed, so that what cannot be is refused before the first byte. */
export function openForTar(target: Target): { pieces: AsyncGenerator<Uint8Array>; close: () => void } {
  const top = openTarget(target, O.RDONLY | O.NONBLOCK);
  const facts = stat(top.fd, NOTHING);
  const type = typeOf(facts);
  if (type !== "directory" && type !== "file") {
    top[Symbol.dispose]();
    throw new FsError("EINVAL");
  }
  return { pieces: gathered(packed(top, facts, target)), close: () => top[Symbol.dispose]() };
}

/** A piece of an archive, or one that is being read on another thread. */
type Piece = Uint8Array | Promise<Uint8Array>;

/**
 * The archive of a directory, with names relative to it (`./a/b`), or of one file. Symlinks are packed, not followed;
 * further names of one file are hard links; holes are not sent. Sockets, pipes and devices are left out. What vanishes
 * meanwhile is left out; a file that becomes shorter while it is read breaks the archive off, so that nobody takes it
 * for a whole one. Nothing here waits: through these levels every promise would cost more than a small file's read.
 */
function* packed(top: Fd, facts: Stat, target: Target): Generator<Piece> {
  const known = new Map<string, Buffer>();
  if (typeOf(facts) === "directory") {
    yield header({ path: Buffer.from("./"), type: "directory" }, facts);
    yield* below({ dirFd: top.fd, prefix: Buffer.from("./"), known });
  } else {
    using spot = openSpot(target);
    yield* file(top.fd, spot.name, facts);
  }
  yield TAR_END;
}

interface Directory {
  readonly dirFd: number;
  readonly prefix: Buffer;
  /** Where files with several names were packed first. */
  readonly known: Map<string, Buffer>;
}

function* below(here: Directory): Generator<Piece> {
  const { dirFd, prefix, known } = here;
  for (const name of namesIn(dirFd)) {
    const facts = statIfAny(dirFd, name);
    if (facts === undefined) continue;
    const path = Buffer.concat([prefix, name]);
    const type = typeOf(facts);
    if (type === "symlink") {
      const target = ifAny(() => readLink(dirFd, name));
      if (target !== undefined) yield header({ path, type, target }, facts);
    } else if (type === "directory") yield* directory(here, { name, path, facts });
    else if (type === "file") {
      const first = facts.links > 1 ? known.get(`${facts.dev} ${facts.ino}`) : undefined;
      if (first !== undefined) yield header({ path, type: "link", target: first }, facts);
      else if ((yield* fileIn(dirFd, name, path)) && facts.links > 1)
        known.set(`${facts.dev} ${facts.ino}`, path);
    }
  }
}

function* directory(
  here: Directory,
  { name, path, facts }: { name: Buffer; path: Buffer; facts: Stat },
): Generator<Piece> {
  const flags = O.RDONLY | O.DIRECTORY | O.NOFOLLOW;
  using dir = ifAny(() => open(name, { at: here.dirFd, flags, resolve: resolve.plainly }));
  if (dir === undefined) return;
  const prefix = Buffer.concat([path, Buffer.from("/")]);
  yield header({ path: prefix, type: "directory" }, facts);
  yield* below({ ...here, dirFd: dir.fd, prefix });
}

/** Says whether it was still there, and a file. */
function* fileIn(dirFd: number, name: Buffer, path: Buffer): Generator<Piece, boolean> {
  const flags = O.RDONLY | O.NOFOLLOW | O.NONBLOCK;
  using opened = ifAny(() => open(name, { at: dirFd, flags, resolve: resolve.plainly }));
  if (opened === undefined) return false;
  const facts = stat(opened.fd, NOTHING);
  if (typeOf(facts) !== "file") return false;
  yield* file(opened.fd, path, facts);
  return true;
}

/** `undefined` if it has just vanished. */
function ifAny<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof FsError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function* file(fd: number, path: Buffer, facts: Stat): Generator<Piece> {
  const { size } = facts;
  const sparse = facts.storedBytes < size ? segmentsOf(fd, size) : undefined;
  yield header({ path, type: "file", sizeBytes: size, sparse }, facts);
  let sent = 0;
  for (const { offset, length } of sparse ?? [{ offset: 0, length: size }]) {
    for (let at = 0; at < length; at += PIECE_BYTES)
      yield read(fd, { path, at: offset + at, length: Math.min(PIECE_BYTES, length - at) });
    sent += length;
  }
  const padding = paddingOf(sent);
  if (padding > 0) yield TAR_END.subarray(0, padding);
}

/** With a last one that is empty at the end of the file, as GNU's form wants it. */
function segmentsOf(fd: number, size: number): TarEntry["sparse"] {
  const found = dataIn(fd, size);
  const last = found.at(-1);
  const isFilled = last !== undefined && last.offset + last.length === size;
  return isFilled ? found : [...found, { offset: size, length: 0 }];
}

interface Wanted {
  readonly path: Buffer;
  readonly at: number;
  readonly length: number;
}

/** All of it: what is less than the header said breaks the archive off. */
function read(fd: number, wanted: Wanted): Piece {
  const { path, at, length } = wanted;
  if (length > SMALL_FILE_BYTES) return readElsewhere(fd, wanted);
  const buffer = Buffer.allocUnsafeSlow(length);
  if (readSync(fd, buffer, 0, length, at) < length) throw shrunk(path);
  return buffer;
}

async function readElsewhere(fd: number, { path, at, length }: Wanted): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length; ) {
    const got = await readAt(fd, { buffer: buffer.subarray(done), at: at + done });
    if (got === 0) throw shrunk(path);
    done += got;
  }
  return buffer;
}

function shrunk(path: Buffer): Error {
  return new Error(`${path} became shorter while it was packed`);
}

function header(
  entry: Pick<TarEntry, "path" | "type"> & Partial<TarEntry>,
  { mode, mtimeNs }: Stat,
): Uint8Array {
  const mtime = Number(mtimeNs / 1_000_000_000n);
  return tarHeader({ sizeBytes: 0, target: NOTHING, mode: mode & 0o7777, mtime, ...entry });
}

/** Small pieces together: a socket takes one large piece far faster than a hundred small ones. */
async function* gathered(pieces: Generator<Piece>): AsyncGenerator<Uint8Array> {
  const turns = new Turns();
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for (const next of pieces) {
    const piece = next instanceof Promise ? await next : next;
    waiting.push(piece);
    bytes += piece.length;
    if (bytes >= PIECE_BYTES / 2) {
      yield waiting.length === 1 ? piece : Buffer.concat(waiting);
      [waiting, bytes] = [[], 0];
    }
    const turn = turns.next();
    if (turn !== undefined) await turn;
  }
  if (bytes > 0) yield Buffer.concat(waiting);
}
