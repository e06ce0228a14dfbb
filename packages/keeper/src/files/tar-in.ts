import { fchmodSync, ftruncateSync, futimesSync } from "node:fs";
import { HoldfastError, type TarResult } from "@holdfast/protocol";
import { readTar, type TarEntry, TarError, type TarMember } from "@holdfast/protocol/tar";
import {
  type Fd,
  FsError,
  link,
  makeDirectory,
  O,
  open,
  resolve,
  stat,
  symlink,
  typeOf,
} from "./fs-calls.ts";
import { maybeUnzipped } from "./gunzip.ts";
import { mergeInto } from "./merge.ts";
import { openPlace, type Staging } from "./staging.ts";
import { Turns } from "./turns.ts";
import { writeAt } from "./write.ts";

export interface Limits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

// On the way to an entry, where the archive does not have it.
const UNNAMED_DIRECTORY_MODE = 0o755;

interface Dir {
  readonly path: Buffer;
  readonly mode: number;
  readonly mtime: number;
}

/**
 * Unpacks an archive in a directory of its own, where nothing else is and no name can lead out, and only when all of it
 * was taken, moves what is there into place. A bad archive, a cut connection or a full disk change nothing.
 */
export async function unpack(
  body: AsyncIterable<Uint8Array>,
  staging: Staging,
  options: { limits: Limits; check: () => void },
): Promise<TarResult> {
  const unpacking = new Unpacking(staging.top, options.limits);
  try {
    for await (const member of readTar(await maybeUnzipped(body))) {
      options.check();
      await unpacking.add(member);
    }
  } catch (error) {
    throw error instanceof TarError ? refused(error.message) : error;
  }
  await mergeInto(staging.top.fd, staging.into.fd);
  unpacking.finishDirectories(staging.into);
  return unpacking.result;
}

class Unpacking {
  readonly #top: Fd;
  readonly #limits: Limits;
  readonly #turns = new Turns();
  readonly #dirs = new Map<string, Dir>();
  #entries = 0;
  #bytes = 0;

  constructor(top: Fd, limits: Limits) {
    this.#top = top;
    this.#limits = limits;
  }

  get result(): TarResult {
    return { entries: this.#entries, sizeBytes: this.#bytes };
  }

  async add({ entry, data }: TarMember): Promise<void> {
    await this.#turns.next();
    this.#count(entry);
    const path = relativePath(entry.path);
    try {
      if (entry.type === "directory") this.#directory(path, entry);
      else if (path.length === 0) throw refused("an entry that is no directory has no name");
      else if (entry.type === "file") await this.#file(path, entry, data);
      else if (entry.type === "symlink") this.#symlink(path, entry);
      else this.#link(path, entry);
    } catch (error) {
      throw entryFailure(error, path);
    }
  }

  /** Modes and times of directories that the archive names: now nothing more is put into them. The deepest first. */
  finishDirectories(into: Fd): void {
    for (const { path, mode, mtime } of [...this.#dirs.values()].reverse()) {
      try {
        using dir = open(path, { at: into.fd, flags: O.RDONLY | O.DIRECTORY, resolve: resolve.plainly });
        futimesSync(dir.fd, mtime, mtime);
        fchmodSync(dir.fd, mode);
      } catch (error) {
        if (!(error instanceof FsError)) throw error; // the work has moved it away meanwhile
      }
    }
  }

  #count(entry: TarEntry): void {
    this.#entries += 1;
    this.#bytes += entry.sizeBytes;
    const { maxBytes, maxEntries } = this.#limits;
    if (this.#entries > maxEntries) throw tooLarge(`more than ${maxEntries} entries`, "maxEntries");
    if (this.#bytes > maxBytes) throw tooLarge(`files of more than ${maxBytes} bytes`, "maxBytes");
  }

  #directory(path: Buffer, { mode, mtime }: TarEntry): void {
    if (path.length === 0) return; // the one that it is unpacked into stays as it is
    this.#makeDirectory(path, 0o700);
    this.#dirs.set(path.toString("latin1"), { path, mode, mtime });
  }

  #makeDirectory(path: Buffer, mode: number): void {
    this.#make(path, () => {
      using at = openPlace(this.#top, path);
      try {
        makeDirectory(at.dirFd, at.name, mode);
      } catch (error) {
        if (!isCode(error, "EEXIST") || typeOf(stat(at.dirFd, at.name)) !== "directory") throw error;
      }
    });
  }

  async #file(path: Buffer, entry: TarEntry, data: TarMember["data"]): Promise<void> {
    const flags = O.WRONLY | O.CREAT | O.EXCL | O.NOFOLLOW;
    using file = this.#make(path, () =>
      open(path, { at: this.#top.fd, flags, mode: 0o600, resolve: resolve.plainly }),
    );
    for await (const { offset, bytes } of data) await writeAt(file.fd, bytes, offset);
    if (entry.sparse !== undefined) ftruncateSync(file.fd, entry.sizeBytes);
    fchmodSync(file.fd, entry.mode);
    futimesSync(file.fd, entry.mtime, entry.mtime);
  }

  #symlink(path: Buffer, { target }: TarEntry): void {
    this.#make(path, () => {
      using at = openPlace(this.#top, path);
      symlink(target, at);
    });
  }

  /** Only to a file that this archive had before: another would be a way to what is outside. */
  #link(path: Buffer, entry: TarEntry): void {
    const target = relativePath(entry.target);
    using from = openPlace(this.#top, target);
    if (typeOf(stat(from.dirFd, from.name)) !== "file")
      throw refused(`${path} is a hard link to what is no file`);
    this.#make(path, () => {
      using at = openPlace(this.#top, path);
      link(from, at);
    });
  }

  /** Makes directories on the way where the archive did not name them. */
  #make<T>(path: Buffer, make: () => T): T {
    try {
      return make();
    } catch (error) {
      if (!isCode(error, "ENOENT")) throw error;
      const end = path.lastIndexOf(0x2f);
      if (end === -1) throw error;
      this.#makeDirectory(path.subarray(0, end), UNNAMED_DIRECTORY_MODE);
      return make();
    }
  }
}

/** Without `.` and empty parts. `..` and absolute names are refused: they mean nothing good. */
function relativePath(path: Uint8Array): Buffer {
  const text = Buffer.from(path).toString("latin1");
  if (text.includes("\0")) throw refused("a name has a NUL");
  if (text.startsWith("/")) throw refused(`${Buffer.from(path)} is an absolute name`);
  const parts = text.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(`${Buffer.from(path)} leads out by ..`);
  return Buffer.from(parts.join("/"), "latin1");
}

function entryFailure(error: unknown, path: Buffer): unknown {
  if (isCode(error, "EEXIST")) return refused(`${path} is in the archive twice`);
  if (isCode(error, "ELOOP")) return refused(`${path} would go through a symlink`);
  if (isCode(error, "ENOTDIR")) return refused(`${path} would go through what is no directory`);
  if (isCode(error, "ENOENT")) return refused(`${path} is a link to what is not before it in the archive`);
  if (isCode(error, "ENAMETOOLONG")) return refused(`a name is too long: ${path.subarray(0, 200)}…`);
  return error;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof FsError && error.code === code;
}

function refused(why: string): HoldfastError {
  return new HoldfastError("invalid_argument", `the archive is refused: ${why}`, {
    hint: "nothing was unpacked; make it again without that entry",
    started: "no",
  });
}

function tooLarge(what: string, limit: string): HoldfastError {
  return new HoldfastError("too_large", `the archive has ${what}`, {
    hint: `nothing was unpacked; raise ${limit} if that is what you want`,
    started: "no",
  });
}
