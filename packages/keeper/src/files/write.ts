import { fchmodSync, fchownSync, fsync, write, writeSync } from "node:fs";
import { type FileInfo, HoldfastError } from "@holdfast/protocol";
import { type Conditions, checkConditions } from "./conditions.ts";
import { infoOf } from "./describe.ts";
import {
  FsError,
  O,
  open,
  readLink,
  rename,
  resolve,
  type Stat,
  stat,
  statIfAny,
  typeOf,
  unlink,
} from "./fs-calls.ts";
import { makeParents } from "./make-directory.ts";
import { joined, openSpot, type Spot, type Target } from "./paths.ts";
import type { Pending } from "./pending.ts";

export interface WriteRequest extends Conditions {
  readonly target: Target;
  readonly body: AsyncIterable<Uint8Array>;
  /** Permissions; without it, those of the file that is replaced, or 0644. */
  readonly mode?: number | undefined;
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

const NEW_FILE_MODE = 0o644;

/**
 * Replaces a file whole or not at all: whoever reads it has the old content or the new. The bytes go to a temporary
 * name beside it, which is renamed at the end.
 */
export async function writeFile(request: WriteRequest, pending: Pending): Promise<Written> {
  const { target, body, sync, check } = request;
  if (request.parents) makeParents(target);
  using spot = spotToWrite(target);
  checkConditions(target.path, replaceable(spot, target), request);
  const temporary = pending.add(spot.dirFd);
  const draft = { dirFd: spot.dirFd, name: temporary.name };
  try {
    const flags = O.WRONLY | O.CREAT | O.EXCL | O.NOFOLLOW;
    using file = open(temporary.name, { at: spot.dirFd, flags, mode: 0o600, resolve: resolve.plainly });
    await writeAll(file.fd, body, check);
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

/** Appends every piece; returns when the kernel has all of it. */
async function writeAll(
  fd: number,
  body: AsyncIterable<Uint8Array>,
  check: () => void = () => {},
): Promise<number> {
  let at = 0;
  for await (const chunk of body) {
    check();
    await writeAt(fd, chunk, at);
    at += chunk.length;
  }
  return at;
}

// Less is written on this thread: to hand it to another would cost more.
const SMALL_BYTES = 32 * 1024;

export async function writeAt(fd: number, bytes: Uint8Array, at: number): Promise<void> {
  if (bytes.length <= SMALL_BYTES && writeSync(fd, bytes, 0, bytes.length, at) === bytes.length) return;
  for (let done = 0; done < bytes.length; ) done += await writeSome(fd, bytes.subarray(done), at + done);
}

/** In one step with the last look at what is there, so that no two writers of ours can pass each other. */
function putInPlace(parts: {
  fd: number;
  draft: { dirFd: number; name: Buffer };
  spot: Spot;
  request: WriteRequest;
}): boolean {
  const { fd, draft, spot, request } = parts;
  const found = replaceable(spot, request.target);
  checkConditions(request.target.path, found, request);
  if (found !== undefined) keepOwner(fd, found, request.target);
  fchmodSync(fd, request.mode ?? (found === undefined ? NEW_FILE_MODE : found.mode & 0o7777));
  const ifTaken = found === undefined ? "refuse" : "replace";
  rename(draft, { dirFd: spot.dirFd, name: spot.name }, { ifTaken });
  return found === undefined;
}

function keepOwner(fd: number, found: Stat, { path }: Target): void {
  const ours = stat(fd, new Uint8Array(0));
  if (ours.uid === found.uid && ours.gid === found.gid) return;
  try {
    fchownSync(fd, found.uid, found.gid);
  } catch (cause) {
    throw new HoldfastError(
      "forbidden",
      `${path} belongs to another user, who it could not be given back to`,
      {
        hint: "delete it first if it may become the sandbox's user's own",
        details: { path: path.toString() },
        cause,
      },
    );
  }
}

/** What is there and may be replaced; `undefined` if there is nothing. */
function replaceable(spot: Spot, { path }: Target): Stat | undefined {
  if (spot.name.length === 0) throw new FsError("EISDIR");
  const found = statIfAny(spot.dirFd, spot.name);
  if (found === undefined || typeOf(found) === "file") return found;
  if (typeOf(found) === "directory") throw new FsError("EISDIR");
  throw new HoldfastError("wrong_state", `${path} is no file but a ${typeOf(found)}`, {
    hint: "delete it first, or write to another name",
    details: { path: path.toString(), type: typeOf(found) },
    started: "no",
  });
}

const MOST_LINKS = 40; // the kernel's own bound

/** Where the file is that a symlink leads to: that one is replaced, and the link stays. Below a root, no link may be there. */
function spotToWrite(target: Target): Spot {
  let path = target.path;
  for (let links = 0; links <= MOST_LINKS; links++) {
    const spot = openSpot({ path, root: target.root });
    const found = spot.name.length === 0 ? undefined : statIfAny(spot.dirFd, spot.name);
    if (found === undefined || typeOf(found) !== "symlink") return spot;
    const to = readLink(spot.dirFd, spot.name);
    spot[Symbol.dispose]();
    if (target.root !== undefined) throw new FsError("ELOOP");
    path = to[0] === 0x2f ? to : joined(path.subarray(0, Math.max(1, path.lastIndexOf(0x2f))), to);
  }
  throw new FsError("ELOOP");
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

function synced(fd: number): Promise<void> {
  return new Promise((resolve, reject) => fsync(fd, (error) => (error ? reject(error) : resolve())));
}

async function syncDirectory(dirFd: number): Promise<void> {
  using dir = open(Buffer.from("."), { at: dirFd, flags: O.RDONLY | O.DIRECTORY, resolve: resolve.plainly });
  await synced(dir.fd);
}
