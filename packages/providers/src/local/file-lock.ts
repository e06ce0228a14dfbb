import { dlopen, ptr } from "bun:ffi";
import { createHash } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";

/**
 * Several servers may share a data dir. What must not happen twice at a time is done under a lock that the kernel
 * holds between processes and lets go with the process, however that ends. All locks are places in one file: none has
 * to be made when the disk is full, and none is left behind.
 */
const { symbols: libc } = dlopen("libc.so.6", { fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" } });

/** Of the open file and not of the process: so two providers in one process exclude each other, too. */
const F_OFD_SETLK = 37;
const lockTypes = { shared: 0, alone: 1 } as const;
/** Nothing tells when another process lets go; a stop takes some ten milliseconds. */
const MAX_PAUSE_MS = 20;

export interface LockOptions {
  readonly file: string;
  readonly key: string;
  readonly mode: keyof typeof lockTypes;
  readonly signal: AbortSignal;
}

export async function withFileLock<T>(options: LockOptions, work: () => Promise<T>): Promise<T> {
  const fd = openLock(options.file);
  if (fd === undefined) return work();
  try {
    await take(fd, options);
    return await work();
  } finally {
    closeSync(fd);
  }
}

/** Does nothing, and returns `undefined`, where somebody else has it. */
export async function ifUnlocked<T>(
  { file, key, mode }: Omit<LockOptions, "signal">,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const fd = openLock(file);
  if (fd === undefined) return work();
  try {
    return tryTake(fd, lockRequest(key, mode)) ? await work() : undefined;
  } finally {
    closeSync(fd);
  }
}

/** `undefined` on a file system that is read-only by now: nothing is launched there, and stops do not disturb each other. */
function openLock(file: string): number | undefined {
  try {
    return openSync(file, "a+", 0o600);
  } catch (error) {
    if (isCode(error, "EROFS")) return undefined;
    throw error;
  }
}

async function take(fd: number, { key, mode, signal }: LockOptions): Promise<void> {
  const request = lockRequest(key, mode);
  for (let pauseMs = 1; !tryTake(fd, request); ) {
    if (signal.aborted) throw heldElsewhere(key, signal.reason);
    await sleep(pauseMs);
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  }
}

function tryTake(fd: number, request: Uint8Array): boolean {
  return libc.fcntl(fd, F_OFD_SETLK, ptr(request)) === 0;
}

/** The kernel's `struct flock` on 64-bit machines: type and whence (16 bits each), start, length, pid. */
function lockRequest(key: string, mode: keyof typeof lockTypes): Uint8Array {
  const request = Buffer.alloc(32);
  request.writeInt16LE(lockTypes[mode], 0);
  // 48 bits: two keys that meet in one place only wait for each other.
  request.writeBigInt64LE(BigInt(createHash("sha256").update(key).digest().readUIntBE(0, 6)), 8);
  request.writeBigInt64LE(1n, 16);
  return request;
}

function heldElsewhere(key: string, cause: unknown): HoldfastError {
  return new HoldfastError("unavailable", `another server works on ${key} in this data dir`, {
    hint: "Try again. If it lasts, look for a server on the same data dir that is stopped or hangs.",
    cause,
    started: "no",
  });
}
