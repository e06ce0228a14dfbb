import { dlopen, FFIType } from "bun:ffi";
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";

/** `alone`: no other server at all. `shared`: others, too, whose rows are in the same PostgreSQL. */
export type HoldMode = "alone" | "shared";

/** How `flock` is asked for it, without waiting. */
const lockFlags = { alone: 2 | 4, shared: 1 | 4 } as const satisfies Record<HoldMode, number>;

/** A data dir that this process works in. */
export interface HeldDataDir {
  readonly path: string;
  /** May be called twice. */
  release(): void;
}

/**
 * Makes the data dir and locks it: two servers that do not share their rows would sweep each other's instances. The
 * kernel lets go of the lock with the process, however that ends.
 */
export function holdDataDir(path: string, { mode }: { mode: HoldMode }): HeldDataDir {
  prepare(path);
  const lockFile = join(path, "lock");
  const fd = openSync(lockFile, "a+", 0o600);
  const libc = dlopen("libc.so.6", { flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } });
  if (libc.symbols.flock(fd, lockFlags[mode]) !== 0) {
    closeSync(fd);
    throw inUse(path, readFileSync(lockFile, "utf8").trim());
  }
  // Of several that share it, the last one to come is named to whoever wants it alone.
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { path, release: once(() => closeSync(fd)) };
}

function prepare(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
    // Only traversable: the sandboxes' users must reach their own folders below, and nobody else's.
    if (statSync(path).uid === process.getuid?.()) chmodSync(path, 0o711);
  } catch (cause) {
    throw new HoldfastError("unavailable", `cannot use the data dir ${path}: ${(cause as Error).message}`, {
      hint: "give one that you may write to: --data-dir DIR or HOLDFAST_DATA_DIR",
      cause,
    });
  }
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

function inUse(path: string, pid: string): HoldfastError {
  return new HoldfastError(
    "already_exists",
    `a server is already running on ${path} (pid ${pid || "unknown"})`,
    {
      hint: "use that one, stop it first, or give this one another --data-dir and --port",
    },
  );
}
