import { statfs } from "node:fs/promises";
import { HoldfastError } from "@holdfast/protocol";

/** What a file system says when it is full, has become read-only, or fails. */
const fatal = {
  ENOSPC: "it is full",
  EROFS: "it is read-only",
  EIO: "it cannot be read or written",
} as const;
type Errno = keyof typeof fatal;

/**
 * A keeper's bundle is some 100 MB, and a copy of it that did not fit is gone again when we look: with less than this
 * a file system counts as full.
 */
const FULL_BYTES = 128n * 1024n * 1024n;

export interface FreeSpace {
  readonly freeBytes: bigint;
  /** A file system that has no fixed number of them says 0 of 0. */
  readonly inodes: bigint;
  readonly freeInodes: bigint;
}

/** Runs it, and turns a failure of the file system itself into `host_storage_unusable`. */
export async function namingStorage<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined) throw error;
    if (errno === "ENOSPC" && !isFull(await freeSpace(dataDir))) throw error;
    throw unusable(dataDir, errno, error);
  }
}

/** The kernel says ENOSPC also of other things that run out: watches, namespaces, control groups. */
export function isFull({ freeBytes, inodes, freeInodes }: FreeSpace): boolean {
  return freeBytes < FULL_BYTES || (inodes > 0n && freeInodes === 0n);
}

/** From the error itself or from one that caused it. */
export function errnoOf(error: unknown): Errno | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    const code = "code" in one && one.code;
    const errno = one instanceof HoldfastError ? one.details?.errno : code;
    if (typeof errno === "string" && Object.hasOwn(fatal, errno)) return errno as Errno;
  }
  return undefined;
}

async function freeSpace(dataDir: string): Promise<FreeSpace> {
  const { bsize, bavail, files, ffree } = await statfs(dataDir, { bigint: true });
  return { freeBytes: bsize * bavail, inodes: files, freeInodes: ffree };
}

function unusable(dataDir: string, errno: Errno, cause: unknown): HoldfastError {
  const message = `the file system of the data dir ${dataDir} cannot be used: ${fatal[errno]}`;
  return new HoldfastError("host_storage_unusable", message, {
    hint: "The operator must make room on it or repair it; what runs goes on running.",
    details: { errno, dataDir },
    cause,
  });
}
