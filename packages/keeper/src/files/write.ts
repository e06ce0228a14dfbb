import { fsync, write, writeSync } from "node:fs";
import type { FileInfo } from "@holdfast/protocol";
import { checkConditions } from "./conditions.ts";
import { infoOf } from "./describe.ts";
import { O, open, resolve, stat, unlink } from "./fs-calls.ts";
import { withParents } from "./make-directory.ts";
import type { Pending } from "./pending.ts";
import { type Placing, putInPlace, replaceable, spotToWrite } from "./put-in-place.ts";

export interface WriteRequest extends Placing {
  readonly body: AsyncIterable<Uint8Array>;
  /** Answers only when it is on the disk, not just in the kernel's memory. */
  readonly sync: boolean;
  /** Makes directories that are missing on the way. */
  readonly parents: boolean;
  /** Throws if the caller may not go on. */
  readonly check: () => void;
}

export interface Written {
  readonly created: boolean;
  readonly file: FileInfo;
}

/**
 * Replaces a file whole or not at all: whoever reads it has the old content or the new. The bytes go to a temporary
 * name beside it, which is renamed at the end.
 */
export async function writeFile(request: WriteRequest, pending: Pending): Promise<Written> {
  const { target, body, sync, check } = request;
  const find = () => spotToWrite(target);
  using spot = request.parents ? withParents(target, find) : find();
  checkConditions(target.path, replaceable(spot, target), request);
  const temporary = pending.add(spot.dirFd);
  const draft = { dirFd: spot.dirFd, name: temporary.name };
  try {
    const flags = O.WRONLY | O.CREAT | O.EXCL | O.NOFOLLOW;
    using file = open(temporary.name, { at: spot.dirFd, flags, mode: 0o600, resolve: resolve.plainly });
    await writeAll(file.fd, body, { check });
    if (sync) await synced(file.fd);
    const created = putInPlace({ fd: file.fd, draft, spot, request });
    temporary.done();
    if (sync) await syncDirectory(spot.dirFd);
    const where = { dirFd: spot.dirFd, name: spot.name };
    return { created, file: infoOf(target.path, stat(file.fd, new Uint8Array(0)), where) };
  } catch (error) {
    removeDraft(draft);
    throw error;
  } finally {
    temporary.done();
  }
}

// A socket's pieces are small, and the way to another thread is long: so many go together.
const WRITTEN_AT_A_TIME = 512 * 1024;

/**
 * Writes every piece behind the last; gives the end when the kernel has all of it. The next pieces arrive while the last
 * are written. If the body breaks off, all that came before is written.
 */
export async function writeAll(
  fd: number,
  body: AsyncIterable<Uint8Array>,
  { from = 0, check }: { from?: number; check: () => void },
): Promise<number> {
  let at = from;
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  let writing: Promise<void> | undefined;
  const flush = async () => {
    await writing;
    const [pieces, offset] = [waiting, at];
    at += bytes;
    [waiting, bytes] = [[], 0];
    writing = writeTogether(fd, pieces, offset);
    writing.catch(() => undefined); // it is thrown where it is waited for
  };
  try {
    for await (const chunk of body) {
      check();
      waiting.push(chunk);
      bytes += chunk.length;
      if (bytes >= WRITTEN_AT_A_TIME) await flush();
    }
  } finally {
    await flush();
    await writing;
  }
  return at;
}

function writeTogether(fd: number, pieces: Uint8Array[], at: number): Promise<void> {
  const [first] = pieces;
  return writeAt(fd, first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces), at);
}

// Less is written on this thread: to hand it to another would cost more.
const SMALL_BYTES = 32 * 1024;

export async function writeAt(fd: number, bytes: Uint8Array, at: number): Promise<void> {
  if (bytes.length <= SMALL_BYTES && writeSync(fd, bytes, 0, bytes.length, at) === bytes.length) return;
  for (let done = 0; done < bytes.length; ) done += await writeSome(fd, bytes.subarray(done), at + done);
}

function removeDraft(draft: { dirFd: number; name: Buffer }): void {
  try {
    unlink(draft.dirFd, draft.name);
  } catch {
    // It was never made, was moved into place, or the work has removed it.
  }
}

function writeSome(fd: number, bytes: Uint8Array, at: number): Promise<number> {
  return new Promise((resolve, reject) =>
    write(fd, bytes, 0, bytes.length, at, (error, length) => (error ? reject(error) : resolve(length))),
  );
}

export function synced(fd: number): Promise<void> {
  return new Promise((resolve, reject) => fsync(fd, (error) => (error ? reject(error) : resolve())));
}

async function syncDirectory(dirFd: number): Promise<void> {
  using dir = open(Buffer.from("."), { at: dirFd, flags: O.RDONLY | O.DIRECTORY, resolve: resolve.plainly });
  await synced(dir.fd);
}
