import {
  chmodSync,
  closeSync,
  fchmodSync,
  ftruncateSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { readTar, type TarEntry, TarError, type TarMember } from "@holdfast/protocol/tar";
import { HoldfastError } from "holdfast";

const SLASH = Buffer.from("/");

/**
 * Unpacks an archive that came out of a sandbox, and is trusted as little as what runs there, into a new directory that
 * only we write to: a name leads only through directories that this archive has made. `finish`, when all of it is where
 * it belongs, gives directories their modes and times: one that may not be written to could not be moved into place.
 */
export async function unpack(
  archive: AsyncIterable<Uint8Array>,
  top: string,
): Promise<{ finish: (at: string) => void }> {
  const unpacking = new Unpacking(Buffer.from(top));
  try {
    for await (const member of readTar(archive)) await unpacking.add(member);
    return { finish: (at) => unpacking.finish(Buffer.from(at)) };
  } catch (error) {
    throw error instanceof TarError ? refused(error.message) : error;
  }
}

class Unpacking {
  readonly #top: Buffer;
  readonly #made = new Map<string, TarEntry["type"]>([["", "directory"]]);
  readonly #directories: { key: string; entry: TarEntry }[] = [];

  constructor(top: Buffer) {
    this.#top = top;
  }

  async add({ entry, data }: TarMember): Promise<void> {
    const parts = partsOf(entry.path);
    const key = parts.join("/");
    if (entry.type === "directory") {
      // The one that it is unpacked into stays as it is.
      return key === "" ? undefined : this.#directory(parts, entry);
    }
    if (this.#made.has(key)) throw refused(`${text(key)} is in the archive twice`);
    this.#directory(parts.slice(0, -1));
    const path = this.#pathOf(key);
    if (entry.type === "symlink") symlinkSync(Buffer.from(entry.target), path);
    else if (entry.type === "link") linkSync(this.#earlierFile(entry), path);
    else await writeFile(path, entry, data);
    this.#made.set(key, entry.type === "link" ? "file" : entry.type);
  }

  /** Now nothing more is put into them. The deepest first. */
  finish(top: Buffer): void {
    for (const { key, entry } of this.#directories.reverse()) {
      const path = pathOf(top, key);
      utimesSync(path, entry.mtime, entry.mtime);
      chmodSync(path, entry.mode);
    }
  }

  #directory(parts: string[], entry?: TarEntry): void {
    const key = parts.join("/");
    const found = this.#made.get(key);
    if (found !== undefined && found !== "directory")
      throw refused(`${text(key)} is no directory, but has something in it`);
    if (found === undefined) {
      this.#directory(parts.slice(0, -1));
      mkdirSync(this.#pathOf(key), { mode: entry === undefined ? 0o755 : 0o700 });
      this.#made.set(key, "directory");
    }
    if (entry !== undefined) this.#directories.push({ key, entry });
  }

  #earlierFile({ path, target }: TarEntry): Buffer {
    const key = partsOf(target).join("/");
    if (this.#made.get(key) !== "file")
      throw refused(`${text(path)} is a hard link to no earlier file of it`);
    return this.#pathOf(key);
  }

  #pathOf(key: string): Buffer {
    return pathOf(this.#top, key);
  }
}

function pathOf(top: Buffer, key: string): Buffer {
  return Buffer.concat([top, SLASH, Buffer.from(key, "latin1")]);
}

/** On this thread: of a small file, handing six calls to another costs ten times as much as the calls. */
async function writeFile(path: Buffer, entry: TarEntry, data: TarMember["data"]): Promise<void> {
  const fd = openSync(path, "wx", 0o600);
  try {
    for await (const { offset, bytes } of data) writeAt(fd, bytes, offset);
    if (entry.sparse !== undefined) ftruncateSync(fd, entry.sizeBytes);
    // What would run here as somebody else does not come out of a sandbox.
    fchmodSync(fd, entry.mode & 0o777);
    futimesSync(fd, entry.mtime, entry.mtime);
  } finally {
    closeSync(fd);
  }
}

function writeAt(fd: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, at + done);
}

/** The parts of a name, each byte a character. `..` and absolute names are refused. */
function partsOf(path: Uint8Array): string[] {
  const name = Buffer.from(path).toString("latin1");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..") || name.includes("\0"))
    throw refused(`${text(path)} leads out of the directory`);
  return parts;
}

function text(name: Uint8Array | string): string {
  return Buffer.from(name as string, "latin1").toString();
}

function refused(why: string): HoldfastError {
  return new HoldfastError("invalid_argument", `what the sandbox sent is refused: ${why}`, {
    hint: "nothing was copied; look at it inside before you trust it",
  });
}
