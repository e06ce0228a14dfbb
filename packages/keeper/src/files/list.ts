import { type FileInfo, type FileList, HoldfastError } from "@holdfast/protocol";
import { infoOf, sha256Of } from "./describe.ts";
import { FsError, namesIn, O, open, resolve, statIfAny, typeOf } from "./fs-calls.ts";
import { joined, openTarget, type Target } from "./paths.ts";
import { Turns } from "./turns.ts";

export interface ListRequest {
  readonly target: Target;
  /** 1: what is in the directory itself. */
  readonly depth: number;
  readonly limit: number;
  /** As a page before gave it. */
  readonly cursor?: string | undefined;
  readonly hash: boolean;
}

/**
 * A page of what is below a directory, each directory before its content, in the order of the names' bytes. Symlinks are
 * told, not followed. The cursor is the last path that was given: a page goes on after it, whatever changed meanwhile.
 */
export async function listFiles({ target, depth, limit, cursor, hash }: ListRequest): Promise<FileList> {
  using top = openTarget(target, O.RDONLY | O.DIRECTORY);
  const after = cursor === undefined ? [] : partsOf(cursor);
  const files: FileInfo[] = [];
  const turns = new Turns();
  let last: Buffer[] = [];
  for (const found of below({ dirFd: top.fd, path: target.path, parts: [], depth, after })) {
    if (files.length === limit) return { files, nextCursor: cursorOf(last) };
    await turns.next();
    const sha256 = hash && found.info.type === "file" ? await sha256Of(found.dirFd, found.name) : undefined;
    files.push({ ...found.info, ...(sha256 !== undefined && { sha256 }) });
    last = found.parts;
  }
  return { files };
}

interface Directory {
  readonly dirFd: number;
  readonly path: Buffer;
  /** The names from the top to here. */
  readonly parts: Buffer[];
  readonly depth: number;
  /** The names, from here on, of the last one that was given before. */
  readonly after: Buffer[];
}

interface Found {
  readonly dirFd: number;
  readonly name: Buffer;
  readonly parts: Buffer[];
  readonly info: FileInfo;
}

function* below({ dirFd, path, parts, depth, after }: Directory): Generator<Found> {
  const [first, ...rest] = after;
  for (const name of namesIn(dirFd)) {
    const order = first === undefined ? 1 : Buffer.compare(name, first);
    if (order < 0) continue;
    const stat = statIfAny(dirFd, name);
    if (stat === undefined) continue; // gone in the meantime
    const here = [...parts, name];
    const itsPath = joined(path, name);
    if (order > 0) yield { dirFd, name, parts: here, info: infoOf(itsPath, stat, { dirFd, name }) };
    if (typeOf(stat) !== "directory" || depth === 1) continue;
    using dir = openIfAllowed(dirFd, name);
    if (dir === undefined) continue;
    yield* below({
      dirFd: dir.fd,
      path: itsPath,
      parts: here,
      depth: depth - 1,
      after: order === 0 ? rest : [],
    });
  }
}

/** `undefined` for what may not be read, or is no directory by now. */
function openIfAllowed(dirFd: number, name: Buffer) {
  try {
    const flags = O.RDONLY | O.DIRECTORY | O.NOFOLLOW;
    return open(name, { at: dirFd, flags, resolve: resolve.plainly });
  } catch (error) {
    if (error instanceof FsError && error.code !== "EMFILE") return undefined;
    throw error;
  }
}

function cursorOf(parts: Buffer[]): string {
  return Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [Buffer.from("/"), part]))).toString(
    "base64url",
  );
}

function partsOf(cursor: string): Buffer[] {
  if (!/^[\w-]+$/.test(cursor))
    throw new HoldfastError("invalid_argument", "the cursor is not one that a list gave", { started: "no" });
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  return text.split("/").map((part) => Buffer.from(part, "latin1"));
}
