import type { BigIntStats } from "node:fs";
import { HoldfastError } from "@holdfast/protocol/errors";
import { linkId } from "./links.ts";
import { isUnchanged, markOf, readPlainly, stampOf } from "./local.ts";
import type { NodeParts } from "./node.ts";
import type { LargeUpload, Upload } from "./remote.ts";
import type { Noted } from "./state.ts";
import type { Job } from "./transfer.ts";

const NOTHING = new Uint8Array(0);

/** Our side of a sync. Whatever is called a file in the sandbox, nothing outside of this directory is written. */
export class LocalDirectory {
  readonly root: string;
  readonly #node: NodeParts;

  /** `root` is a real path: no part of it is a link. */
  constructor(node: NodeParts, root: string) {
    this.#node = node;
    this.root = root;
  }

  /** What to send; `undefined` if the file is not any more what it was when it was looked at. */
  async uploadOf({ path, local, remote }: Job): Promise<Upload | undefined> {
    const expected = remote?.etag ?? null;
    if (local === undefined) return { entry: { op: "delete", path, expected }, bytes: NOTHING };
    if (local.link !== undefined) {
      const entry = { op: "link", path, expected, target: local.link } as const;
      return (await this.isAsSeen({ path, local })) ? { entry, bytes: NOTHING } : undefined;
    }
    const read = await readPlainly(this.#node, `${this.root}/${path}`).catch(() => undefined);
    if (read === undefined) return undefined; // gone, or a link by now
    const { bytes, stats } = read;
    const sha256 = this.#node.crypto.createHash("sha256").update(bytes).digest("hex");
    if (sha256 + markOf(stats) !== local.id) return undefined;
    return { entry: { op: "write", path, expected, sizeBytes: bytes.length, mode: local.mode }, bytes };
  }

  /** A file of any size to send, read as it goes. The entry is of the file that was looked at. */
  async largeUploadOf({ path, local, remote }: Job): Promise<LargeUpload> {
    const content = await this.#node.files.openAsBlob(`${this.root}/${path}`);
    const expected = remote?.etag ?? null;
    const mode = local?.mode ?? "0644";
    return { entry: { op: "write", path, expected, sizeBytes: content.size, mode }, content };
  }

  /** Whether it is still the file, or the absence of one, that was looked at. */
  async isAsSeen({ path, local }: Pick<Job, "path" | "local">): Promise<boolean> {
    const found = await this.#look(path);
    if (local === undefined || found === undefined) return local === undefined && found === undefined;
    if (local.link === undefined) return found.isFile() && isUnchanged(local.stamp, found);
    return found.isSymbolicLink() && (await this.#node.fs.readlink(`${this.root}/${path}`)) === local.link;
  }

  /**
   * Writes a file whole or not at all; `undefined` if there is another one by now than was looked at. Its permissions are
   * the sandbox's as far as this user's umask allows.
   */
  put(
    job: Job,
    { content, mode }: { content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>; mode: number },
  ): Promise<Omit<Noted, "etag"> | undefined> {
    const { fs, crypto } = this.#node;
    const hash = crypto.createHash("sha256");
    return this.#replace(job, async (temporary) => {
      const file = await fs.open(temporary, "wx", mode & 0o777);
      const hashedAt = Date.now();
      try {
        for await (const chunk of content) {
          hash.update(chunk);
          await file.writeFile(chunk);
        }
        const stats = await file.stat({ bigint: true });
        return { id: hash.digest("hex") + markOf(stats), local: stampOf(stats, hashedAt) };
      } finally {
        await file.close();
      }
    });
  }

  /** The same for a symlink, of which the caller knows that it stays inside. */
  putLink(job: Job, target: string): Promise<Omit<Noted, "etag"> | undefined> {
    const { fs } = this.#node;
    return this.#replace(job, async (temporary) => {
      await fs.symlink(target, temporary);
      const stats = await fs.lstat(temporary, { bigint: true });
      return { id: linkId(target), local: stampOf(stats, Date.now()) };
    });
  }

  async #replace<T>(job: Job, make: (temporary: string) => Promise<T>): Promise<T | undefined> {
    const { fs, crypto, path: paths } = this.#node;
    const goal = `${this.root}/${job.path}`;
    await this.#makeDirectory(job.path);
    const temporary = paths.join(paths.dirname(goal), `.holdfast-sync-${crypto.randomUUID()}`);
    let isPlaced = false;
    try {
      const made = await make(temporary);
      if (!(await this.isAsSeen(job))) return undefined;
      await fs.rename(temporary, goal);
      isPlaced = true;
      return made;
    } finally {
      if (!isPlaced) await fs.rm(temporary, { force: true });
    }
  }

  /** With the directories that are empty then. False if it is another file by now than was looked at. */
  async remove(job: Job): Promise<boolean> {
    const { fs, path: paths } = this.#node;
    if (!(await this.isAsSeen(job))) return false;
    let dir = paths.dirname(`${this.root}/${job.path}`);
    await this.#checkInside(dir, job.path);
    await fs.unlink(`${this.root}/${job.path}`);
    for (let isEmpty = true; isEmpty && dir.length > this.root.length; dir = paths.dirname(dir))
      isEmpty = await fs.rmdir(dir).then(
        () => true,
        () => false, // something is in it, or may be
      );
    return true;
  }

  async #look(path: string): Promise<BigIntStats | undefined> {
    try {
      return await this.#node.fs.lstat(`${this.root}/${path}`, { bigint: true });
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
      throw error;
    }
  }

  /** Makes the directories on the way to a file. A link among them is refused: it may lead anywhere. */
  async #makeDirectory(path: string): Promise<void> {
    const { fs, path: paths } = this.#node;
    const parts = path.split("/");
    if (parts.some((part) => part === "" || part === "." || part === ".." || /[\0\\]/.test(part)))
      throw leadsOut(path);
    let dir = this.root;
    for (const part of parts.slice(0, -1)) {
      dir = paths.join(dir, part);
      await fs.mkdir(dir).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
      const found = await fs.lstat(dir);
      if (found.isSymbolicLink()) throw leadsOut(path);
      if (!found.isDirectory()) throw inTheWay(path, part);
    }
    await this.#checkInside(dir, path);
  }

  async #checkInside(dir: string, path: string): Promise<void> {
    const real = await this.#node.fs.realpath(dir);
    if (real !== this.root && !real.startsWith(`${this.root}${this.#node.path.sep}`)) throw leadsOut(path);
  }
}

function inTheWay(path: string, part: string): HoldfastError {
  return new HoldfastError(
    "wrong_state",
    `here ${JSON.stringify(part)} is a file, and in the sandbox a directory`,
    {
      hint: "remove one of the two, or give it another name",
      details: { path },
    },
  );
}

function leadsOut(path: string): HoldfastError {
  return new HoldfastError("forbidden", `${JSON.stringify(path)} would lead out of the local directory`, {
    hint: "remove the link that is on its way, or the file with that name in the sandbox",
    details: { path },
  });
}
