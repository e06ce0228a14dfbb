import { close, read } from "node:fs";
import type { FileInfo } from "@holdfast/protocol";
import { O, open, readLink, resolve, type Stat, stat, typeOf } from "./fs-calls.ts";

/** Of what it is made: it changes with the content, and with mode and owner; a rename alone changes it, too. */
export function etagOf({ ino, size, mtimeNs, ctimeNs }: Stat): string {
  return [ino, size, mtimeNs, ctimeNs].map((part) => part.toString(36)).join("-");
}

/** A file as clients see it; `at` is where its name is, for what a symlink says. */
export function infoOf(path: Buffer, stat: Stat, at: { dirFd: number; name: Uint8Array }): FileInfo {
  const type = typeOf(stat);
  const name = path.subarray(path.lastIndexOf(0x2f) + 1);
  return {
    ...told(path, "path"),
    name: name.toString(),
    type,
    sizeBytes: stat.size,
    mode: octal(stat.mode),
    uid: stat.uid,
    gid: stat.gid,
    links: stat.links,
    modifiedAt: new Date(Number(stat.mtimeNs / 1_000_000n)).toISOString(),
    etag: etagOf(stat),
    ...(type === "symlink" && told(readLink(at.dirFd, at.name), "target")),
  };
}

const HASHED_AT_A_TIME = 1024 * 1024;
const HASHED_AT_LEAST = 16 * 1024; // the kernel's own files have more in them than their size says

/** Of a regular file in an open directory; `undefined` if it is none by now, or may not be read. */
export async function sha256Of(dirFd: number, name: Uint8Array): Promise<string | undefined> {
  try {
    const flags = O.RDONLY | O.NOFOLLOW | O.NONBLOCK;
    using file = open(name, { at: dirFd, flags, resolve: resolve.plainly });
    return await hashOf(file.fd);
  } catch {
    return undefined;
  }
}

/** Of an open file, from its beginning to its end. */
export async function hashOf(fd: number): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const { size } = stat(fd, new Uint8Array(0));
  // Most files are small, and a large buffer would take longer than they do.
  const buffer = Buffer.allocUnsafe(Math.min(Math.max(size, HASHED_AT_LEAST), HASHED_AT_A_TIME));
  for (let at = 0; ; ) {
    const length = await readAt(fd, { buffer, at });
    if (length === 0) return hash.digest("hex");
    hash.update(buffer.subarray(0, length));
    at += length;
  }
}

/** Off the main thread: a slow disk holds up nobody else. */
export function readAt(fd: number, { buffer, at }: { buffer: Buffer; at: number }): Promise<number> {
  return new Promise((resolve, reject) =>
    read(fd, buffer, 0, buffer.length, at, (error, length) => (error ? reject(error) : resolve(length))),
  );
}

/** Closes a descriptor without holding up anybody; what a disk says only now is thrown. */
export function closed(fd: number): Promise<void> {
  return new Promise((resolve, reject) => close(fd, (error) => (error ? reject(error) : resolve())));
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

/** Text, and the exact bytes where the text does not say them. */
function told<K extends "path" | "target">(bytes: Buffer, key: K): Record<K, string> {
  const text = bytes.toString();
  const isExact = Buffer.from(text).equals(bytes);
  return { [key]: text, ...(!isExact && { [`${key}Base64`]: bytes.toString("base64") }) } as Record<
    K,
    string
  >;
}
