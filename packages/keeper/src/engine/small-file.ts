import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Checker } from "@holdfast/protocol/plain-check";

/** Files in the state directory, where the work inside can put anything: links, pipes, gigabytes. */

const MAX_SMALL_BYTES = 64 * 1024;

/** `undefined` if there is none, or what is there is not of this shape. */
export function readSmallJson<T>(path: string, shape: Checker<T>): T | undefined {
  const content = readRegular(path, { maxBytes: MAX_SMALL_BYTES });
  if (content === undefined) return undefined;
  const parsed = shape.safeParse(jsonOf(content.toString()));
  return parsed.success ? parsed.data : undefined;
}

/** Replaces the file, whole or not at all. Throws if it cannot be written. */
export function writeSmallJson(path: string, value: unknown): void {
  const draft = `${path}.new`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 }); // the work may delete anything
  rmSync(draft, { force: true, recursive: true });
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600, flag: "wx" });
  renameSync(draft, path);
}

/** The content of a regular file that is no larger; anything else is as good as none. Never waits. */
export function readRegular(path: string, options: { maxBytes: number }): Buffer | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    return stat.isFile() && stat.size <= options.maxBytes ? readFileSync(fd) : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** `undefined` for what is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
