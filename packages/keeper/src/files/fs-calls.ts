import { dlopen, ptr, read } from "bun:ffi";
import { closeSync } from "node:fs";
import { constants } from "node:os";
import type { FileType } from "@holdfast/protocol";

/**
 * File calls relative to an open directory, which the runtime does not offer. With them a path is resolved once, and
 * what was found cannot be swapped for something else before it is used. Names are bytes.
 */
const { symbols: libc } = dlopen("libc.so.6", {
  __errno_location: { args: [], returns: "ptr" },
  syscall: { args: ["i64", "i64", "ptr", "ptr", "i64"], returns: "i64" },
  statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
  fstatfs: { args: ["i32", "ptr"], returns: "i32" },
  getdents64: { args: ["i32", "ptr", "u64"], returns: "i64" },
  mkdirat: { args: ["i32", "ptr", "u32"], returns: "i32" },
  unlinkat: { args: ["i32", "ptr", "i32"], returns: "i32" },
  renameat2: { args: ["i32", "ptr", "i32", "ptr", "u32"], returns: "i32" },
  linkat: { args: ["i32", "ptr", "i32", "ptr", "i32"], returns: "i32" },
  symlinkat: { args: ["ptr", "i32", "ptr"], returns: "i32" },
  lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
  readlinkat: { args: ["i32", "ptr", "ptr", "u64"], returns: "i64" },
});

const AT_FDCWD = -100;
export const O = {
  RDONLY: 0,
  WRONLY: 1,
  CREAT: 0o100,
  EXCL: 0o200,
  NONBLOCK: 0o4000,
  CLOEXEC: 0o2000000,
  // These two have other numbers on arm64.
  DIRECTORY: process.arch === "arm64" ? 0o40000 : 0o200000,
  NOFOLLOW: process.arch === "arm64" ? 0o100000 : 0o400000,
  PATH: 0o10000000,
} as const;

/** What a path may do on its way. `magic` links are those of /proc that lead to any open file. */
export const resolve = {
  /** As any program would, but for magic links. */
  freely: 0x02,
  /** Nothing on the way may lead out of the directory it starts from: not `..`, not a symlink. */
  beneath: 0x08 | 0x02,
  /** The same, and no symlink at all. */
  plainly: 0x08 | 0x04 | 0x02,
} as const;
type Resolve = (typeof resolve)[keyof typeof resolve];

const SYS_OPENAT2 = 437; // on every architecture
const AT_REMOVEDIR = 0x200;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_EMPTY_PATH = 0x1000;
const RENAME_NOREPLACE = 1;
const STATX_BASIC = 0x7ff;
const PROC_SUPER_MAGIC = 0x9fa0n;
// The kernel says EAGAIN when somebody renames on our way: it could not be sure. Somebody who does so for ever is refused.
const MOST_RESOLVE_TRIES = 100;

// Where this thread's errno is. Read in the step after the call, before anything else can change it.
const errnoAt = libc.__errno_location() ?? 0;

/** `code` is the error's name, such as ENOENT. */
export class FsError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** An open descriptor that is closed at the end of its block. */
export class Fd implements Disposable {
  readonly fd: number;
  #open = true;

  constructor(fd: number) {
    this.fd = fd;
  }

  [Symbol.dispose](): void {
    if (this.#open) closeSync(this.fd);
    this.#open = false;
  }
}

export interface OpenOptions {
  /** The directory that a relative path starts from. */
  readonly at?: number;
  readonly flags: number;
  readonly mode?: number;
  readonly resolve: Resolve;
}

/** Throws FsError; EXDEV is what leads out of where it must stay, ELOOP a symlink where none may be. */
export function open(path: Uint8Array, { at = AT_FDCWD, flags, mode = 0, resolve: how }: OpenOptions): Fd {
  const request = BigUint64Array.of(BigInt(flags | O.CLOEXEC), BigInt(mode), BigInt(how));
  const name = terminated(path);
  for (let tries = 1; ; tries++) {
    const fd = Number(libc.syscall(SYS_OPENAT2, at, ptr(name), ptr(request), request.byteLength));
    if (fd >= 0) return new Fd(fd);
    const code = lastError();
    if (code !== "EAGAIN" || tries === MOST_RESOLVE_TRIES) throw new FsError(code);
  }
}

/** What statx tells. Times in nanoseconds. */
export interface Stat {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly links: number;
  readonly ino: bigint;
  readonly dev: string;
  readonly size: number;
  /** What it takes on the disk, without its holes. */
  readonly storedBytes: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

const S_IFMT = 0o170000;
const types = new Map<number, FileType>([
  [0o100000, "file"],
  [0o040000, "directory"],
  [0o120000, "symlink"],
  [0o010000, "pipe"],
  [0o140000, "socket"],
]);

export function typeOf({ mode }: Pick<Stat, "mode">): FileType {
  return types.get(mode & S_IFMT) ?? "device";
}

/** Of a name in a directory, the link itself if it is one. An empty name: the descriptor's own. */
export function stat(dirFd: number, name: Uint8Array): Stat {
  const flags = AT_SYMLINK_NOFOLLOW | (name.length === 0 ? AT_EMPTY_PATH : 0);
  const out = Buffer.alloc(256);
  check(libc.statx(dirFd, ptr(terminated(name)), flags, STATX_BASIC, ptr(out)));
  return {
    links: out.readUInt32LE(16),
    uid: out.readUInt32LE(20),
    gid: out.readUInt32LE(24),
    mode: out.readUInt16LE(28),
    ino: out.readBigUInt64LE(32),
    size: Number(out.readBigUInt64LE(40)),
    storedBytes: Number(out.readBigUInt64LE(48)) * 512,
    ctimeNs: timeAt(out, 96),
    mtimeNs: timeAt(out, 112),
    dev: `${out.readUInt32LE(136)}:${out.readUInt32LE(140)}`,
  };
}

/** `undefined` if there is nothing of that name. */
export function statIfAny(dirFd: number, name: Uint8Array): Stat | undefined {
  try {
    return stat(dirFd, name);
  } catch (error) {
    if (error instanceof FsError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

export function isInProc(fd: number): boolean {
  const out = new BigInt64Array(32);
  return libc.fstatfs(fd, ptr(out)) === 0 && out[0] === PROC_SUPER_MAGIC;
}

/** All names in an open directory but `.` and `..`, in the order of their bytes. */
export function namesIn(dirFd: number): Buffer[] {
  const names: Buffer[] = [];
  const out = Buffer.alloc(256 * 1024);
  for (;;) {
    const length = Number(libc.getdents64(dirFd, ptr(out), out.length));
    if (length < 0) throw new FsError(lastError());
    if (length === 0) return names.sort(Buffer.compare);
    for (let at = 0; at < length; at += out.readUInt16LE(at + 16)) {
      const name = out.subarray(at + 19, out.indexOf(0, at + 19));
      if (!isDots(name)) names.push(Buffer.from(name));
    }
  }
}

export function makeDirectory(dirFd: number, name: Uint8Array, mode: number): void {
  check(libc.mkdirat(dirFd, ptr(terminated(name)), mode));
}

export function unlink(dirFd: number, name: Uint8Array): void {
  check(libc.unlinkat(dirFd, ptr(terminated(name)), 0));
}

export function removeDirectory(dirFd: number, name: Uint8Array): void {
  check(libc.unlinkat(dirFd, ptr(terminated(name)), AT_REMOVEDIR));
}

export interface Place {
  readonly dirFd: number;
  readonly name: Uint8Array;
}

/** With `ifTaken: "refuse"`, EEXIST if there is anything of the new name, without a moment in between. */
export function rename(from: Place, to: Place, { ifTaken }: { ifTaken: "replace" | "refuse" }): void {
  const [old, fresh] = [terminated(from.name), terminated(to.name)];
  const flags = ifTaken === "refuse" ? RENAME_NOREPLACE : 0;
  check(libc.renameat2(from.dirFd, ptr(old), to.dirFd, ptr(fresh), flags));
}

/** Another name for the same file. A symlink is not followed. */
export function link(from: Place, to: Place): void {
  const [old, fresh] = [terminated(from.name), terminated(to.name)];
  check(libc.linkat(from.dirFd, ptr(old), to.dirFd, ptr(fresh), 0));
}

export function symlink(target: Uint8Array, { dirFd, name }: Place): void {
  const [leadsTo, fresh] = [terminated(target), terminated(name)];
  check(libc.symlinkat(ptr(leadsTo), dirFd, ptr(fresh)));
}

const SEEK_DATA = 3;
const SEEK_HOLE = 4;

/** Where an open file has data, in order; what is between is holes. */
export function dataIn(fd: number, size: number): { offset: number; length: number }[] {
  const found: { offset: number; length: number }[] = [];
  for (let at = 0; at < size; ) {
    const offset = Number(libc.lseek(fd, at, SEEK_DATA));
    if (offset < 0 || offset >= size) break; // only a hole is left
    const end = Math.min(size, Number(libc.lseek(fd, offset, SEEK_HOLE)));
    if (end <= offset) break; // it was cut shorter meanwhile
    found.push({ offset, length: end - offset });
    at = end;
  }
  return found;
}

export function readLink(dirFd: number, name: Uint8Array): Buffer {
  const out = Buffer.alloc(4096);
  const length = Number(libc.readlinkat(dirFd, ptr(terminated(name)), ptr(out), out.length));
  if (length < 0) throw new FsError(lastError());
  return Buffer.from(out.subarray(0, length));
}

function check(result: number): void {
  if (result < 0) throw new FsError(lastError());
}

// Of two names for one number it is the first: EAGAIN and ENOTSUP, not EWOULDBLOCK and EOPNOTSUPP.
const names = new Map(
  Object.entries(constants.errno)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

function lastError(): string {
  const number = read.i32(errnoAt, 0);
  return names.get(number) ?? `errno ${number}`;
}

function terminated(name: Uint8Array): Buffer {
  const out = Buffer.allocUnsafeSlow(name.length + 1);
  out.set(name);
  out[name.length] = 0;
  return out;
}

function timeAt(out: Buffer, at: number): bigint {
  return out.readBigInt64LE(at) * 1_000_000_000n + BigInt(out.readUInt32LE(at + 8));
}

const DOT = 0x2e;

function isDots(name: Uint8Array): boolean {
  return name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT));
}
