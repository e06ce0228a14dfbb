import type { FileInfo } from "@holdfast/protocol";
import { hashOf, infoOf, sha256Of } from "./describe.ts";
import { O, stat } from "./fs-calls.ts";
import { openSpot, openTarget, type Target } from "./paths.ts";

export interface StatOptions {
  /** Of what a symlink leads to, not of the link. */
  readonly follow: boolean;
  /** With the hash of a file's content. */
  readonly hash: boolean;
}

export async function statFile(target: Target, { follow, hash }: StatOptions): Promise<FileInfo> {
  if (follow) return statFollowed(target, hash ? O.RDONLY | O.NONBLOCK : O.PATH);
  using spot = openSpot(target);
  const info = infoOf(target.path, stat(spot.dirFd, spot.name), spot);
  const sha256 = hash && info.type === "file" ? await sha256Of(spot.dirFd, spot.name) : undefined;
  return { ...info, ...(sha256 !== undefined && { sha256 }) };
}

async function statFollowed(target: Target, flags: number): Promise<FileInfo> {
  using file = openTarget(target, flags);
  const own = { dirFd: file.fd, name: Buffer.alloc(0) };
  const info = infoOf(target.path, stat(file.fd, own.name), own);
  return flags === O.PATH || info.type !== "file" ? info : { ...info, sha256: await hashOf(file.fd) };
}
