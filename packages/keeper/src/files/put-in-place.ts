import { fchmodSync, fchownSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import { type Conditions, checkConditions } from "./conditions.ts";
import { FsError, type Place, readLink, rename, type Stat, stat, statIfAny, typeOf } from "./fs-calls.ts";
import { joined, openSpot, type Spot, type Target } from "./paths.ts";

const NEW_FILE_MODE = 0o644;

export interface Placing extends Conditions {
  readonly target: Target;
  /** Permissions; without it, those of the file that is replaced, or 0644. */
  readonly mode?: number | undefined;
}

/** In one step with the last look at what is there, so that no two writers of ours can pass each other. */
export function putInPlace(parts: { fd: number; draft: Place; spot: Spot; request: Placing }): boolean {
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
export function replaceable(spot: Spot, { path, links }: Target): Stat | undefined {
  if (spot.name.length === 0) throw new FsError("EISDIR");
  const found = statIfAny(spot.dirFd, spot.name);
  if (found === undefined || typeOf(found) === "file") return found;
  if (typeOf(found) === "symlink" && links === "never") return found;
  if (typeOf(found) === "directory") throw new FsError("EISDIR");
  throw new HoldfastError("wrong_state", `${path} is no file but a ${typeOf(found)}`, {
    hint: "delete it first, or write to another name",
    details: { path: path.toString(), type: typeOf(found) },
    started: "no",
  });
}

const MOST_LINKS = 40; // the kernel's own bound

/** Where the file is that a symlink leads to: that one is replaced, and the link stays. Below a root, no link may be there. */
export function spotToWrite(target: Target): Spot {
  let path = target.path;
  for (let links = 0; links <= MOST_LINKS; links++) {
    const spot = openSpot({ ...target, path });
    if (target.links === "never") return spot;
    const found = spot.name.length === 0 ? undefined : statIfAny(spot.dirFd, spot.name);
    if (found === undefined || typeOf(found) !== "symlink") return spot;
    const to = readLink(spot.dirFd, spot.name);
    spot[Symbol.dispose]();
    if (target.root !== undefined) throw new FsError("ELOOP");
    path = to[0] === 0x2f ? to : joined(path.subarray(0, Math.max(1, path.lastIndexOf(0x2f))), to);
  }
  throw new FsError("ELOOP");
}
