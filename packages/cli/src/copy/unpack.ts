import { chmodSync, linkSync, lstatSync, mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { open } from "node:fs/promises";
import { readTar, type TarEntry, TarError, type TarMember } from "@holdfast/protocol/tar";
import { HoldfastError } from "holdfast";

const SLASH = Buffer.from("/");

/**
 * Unpacks an archive that came out of a sandbox, and is trusted as little as what runs there, into a new directory that
 * only we write to: a name leads only through directories that this archive has made.
 */
export async function unpack(archive: AsyncIterable<Uint8Array>, top: string): Promise<void> {
  const unpacking = new Unpacking(Buffer.from(top));
  try {
    for await (const member of readTar(archive)) await unpacking.add(member);
    unpacking.finish();
  } catch (error) {
    throw error instanceof TarError ? refused(error.message) : error;
  }
}

class Unpacking {
  readonly #top: Buffer;
  readonly #made = new Map<string, TarEntry["type"]>([["", "directory"]]);
  readonly #directories: { path: Buffer; entry: TarEntry }[] = [];

  constructor(top: Buffer) {
    this.#top = top;
  }

  async add({ entry, data }: TarMember): Promise<void> {
    const parts = partsOf(entry.path);
    const key = parts.join("/");
    if (entry.type === "directory") return this.#directory(parts, entry);
    if (this.#made.has(key)) throw refused(`${text(key)} is in the archive twice`);
    this.#directory(parts.slice(0, -1));
    const path = this.#pathOf(key);
    if (entry.type === "symlink") symlinkSync(Buffer.from(entry.target), path);
    else if (entry.type === "link") linkSync(this.#earlierFile(entry), path);
    else await writeFile(path, entry, data);
    this.#made.set(key, entry.type === "link" ? "file" : entry.type);
  }

  /** Now nothing more is put into them. The deepest first. */
  finish(): void {
    for (const { path, entry } of this.#directories.reverse()) {
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
    if (entry !== undefined) this.#directories.push({ path: this.#pathOf(key), entry });
  }

  #earlierFile({ path, target }: TarEntry): Buffer {
    const key = partsOf(target).join("/");
    if (this.#made.get(key) !== "file")
      throw refused(`${text(path)} is a hard link to no earlier file of it`);
    return this.#pathOf(key);
  }

  #pathOf(key: string): Buffer {
    return Buffer.concat([this.#top, SLASH, Buffer.from(key, "latin1")]);
  }
}

async function writeFile(path: Buffer, entry: TarEntry, data: TarMember["data"]): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    for await (const { offset, bytes } of data) await handle.write(bytes, 0, bytes.length, offset);
    await handle.truncate(entry.sizeBytes);
    // What would run here as somebody else does not come out of a sandbox.
    await handle.chmod(entry.mode & 0o777);
    await handle.utimes(entry.mtime, entry.mtime);
  } finally {
    await handle.close();
  }
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

/** What is there now; `undefined` if nothing is. A symlink counts as what it leads to. */
export function typeAt(path: string): "directory" | "file" | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  return found.isDirectory() ? "directory" : "file";
}
