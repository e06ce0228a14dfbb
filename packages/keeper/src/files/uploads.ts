import { readdirSync, readlinkSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { type FileInfo, HoldfastError, lazily, type Upload } from "@holdfast/protocol";
import { z } from "zod";
import { readSmallJson, writeSmallJson } from "../engine/small-file.ts";
import type { Conditions } from "./conditions.ts";
import { hashOf, infoOf } from "./describe.ts";
import { type Fd, FsError, O, open, resolve, stat, typeOf, unlink } from "./fs-calls.ts";
import { makeParents } from "./make-directory.ts";
import type { Target } from "./paths.ts";
import { putInPlace, replaceable, spotToWrite } from "./put-in-place.ts";
import { synced, writeAll } from "./write.ts";

// A night's sleep of whoever uploads, with room.
const EXPIRES_AFTER_MS = 24 * 60 * 60 * 1000;

/** What is known of an upload, beside the file itself. `dir` and `name` are where its bytes are until it is whole. */
const Note = lazily(() =>
  z.object({
    path: z.base64(),
    root: z.base64().optional(),
    dir: z.base64(),
    name: z.string().regex(/^\.holdfast-tmp-[0-9a-f]{24}$/),
    mode: z.number().int().optional(),
  }),
);
type Note = z.infer<typeof Note>;

/**
 * Large files that come in parts. The parts gather in a hidden file beside the target, which outlives connections,
 * servers and keepers; the end of it is one rename, like that of any write.
 */
export class Uploads {
  readonly #dir: string;
  readonly #busy = new Set<string>();

  constructor(stateDir: string) {
    this.#dir = join(stateDir, "files", "uploads");
  }

  /** Begins one; or, with the id of one for the same path, goes on with it. */
  begin(request: { uploadId: string; target: Target; mode?: number | undefined; parents: boolean }): Upload {
    const { uploadId, target, mode, parents } = request;
    const known = readSmallJson(this.#noteOf(uploadId), Note);
    if (known !== undefined && isThere(known)) {
      if (known.path === target.path.toString("base64")) return this.find(uploadId);
      throw taken(uploadId);
    }
    if (parents) makeParents(target);
    using spot = spotToWrite(target);
    replaceable(spot, target);
    const name = `.holdfast-tmp-${crypto.getRandomValues(Buffer.alloc(12)).toString("hex")}`;
    const dir = readlinkSync(`/proc/self/fd/${spot.dirFd}`, { encoding: "buffer" }).toString("base64");
    const root = target.root === undefined ? {} : { root: target.root.toString("base64") };
    const path = target.path.toString("base64");
    writeSmallJson(this.#noteOf(uploadId), { path, dir, name, ...root, ...(mode !== undefined && { mode }) });
    const flags = O.WRONLY | O.CREAT | O.EXCL | O.NOFOLLOW;
    open(Buffer.from(name), { at: spot.dirFd, flags, mode: 0o600, resolve: resolve.plainly })[
      Symbol.dispose
    ]();
    return this.find(uploadId);
  }

  /** Throws `not_found` for one that was never begun, is done, or has expired. */
  find(uploadId: string): Upload {
    const { note, dir, draft } = this.#open(uploadId, O.PATH);
    dir[Symbol.dispose]();
    using _ = draft;
    const expiresAt = new Date(statSync(this.#noteOf(uploadId)).mtimeMs + EXPIRES_AFTER_MS).toISOString();
    const path = Buffer.from(note.path, "base64").toString();
    return { uploadId, path, offset: stat(draft.fd, Buffer.alloc(0)).size, expiresAt };
  }

  /** Adds a part. What arrives of it stays, also if the rest does not: `find` says where to go on. */
  async append(
    uploadId: string,
    part: { offset: number; body: AsyncIterable<Uint8Array>; check: () => void },
  ): Promise<Upload> {
    const { dir, draft } = this.#open(uploadId, O.WRONLY);
    dir[Symbol.dispose]();
    using file = draft;
    const { size } = stat(file.fd, Buffer.alloc(0));
    if (size !== part.offset || this.#busy.has(uploadId)) throw notHere(uploadId, size);
    this.#busy.add(uploadId);
    try {
      await writeAll(file.fd, part.body, { from: size, check: part.check });
    } finally {
      this.#busy.delete(uploadId);
      this.#touch(uploadId);
    }
    return this.find(uploadId);
  }

  /** Puts it in place, whole; with `sha256`, only if it has this content. */
  async commit(
    uploadId: string,
    options: Conditions & { sha256?: string | undefined; sync: boolean },
  ): Promise<FileInfo> {
    const { note, dir, draft } = this.#open(uploadId, O.RDONLY);
    using file = draft;
    using from = dir;
    if (this.#busy.has(uploadId)) throw notHere(uploadId, stat(file.fd, Buffer.alloc(0)).size);
    if (options.sha256 !== undefined && (await hashOf(file.fd)) !== options.sha256) throw damaged(uploadId);
    if (options.sync) await synced(file.fd);
    const target = targetOf(note);
    using spot = spotToWrite(target);
    const place = { dirFd: from.fd, name: Buffer.from(note.name) };
    const { ifMatch, ifNoneMatch } = options;
    putInPlace({
      fd: file.fd,
      draft: place,
      spot,
      request: { target, mode: note.mode, ifMatch, ifNoneMatch },
    });
    rmSync(this.#noteOf(uploadId), { force: true });
    return infoOf(target.path, stat(file.fd, Buffer.alloc(0)), spot);
  }

  /** Forgets it, and what has arrived. May be called twice. */
  abort(uploadId: string): void {
    const note = readSmallJson(this.#noteOf(uploadId), Note);
    if (note !== undefined) removeDraft(note);
    rmSync(this.#noteOf(uploadId), { force: true });
  }

  /** Removes those that nobody went on with for a day. */
  expire(now: number): void {
    for (const uploadId of this.#ids()) {
      const { mtimeMs } = statSync(this.#noteOf(uploadId), { throwIfNoEntry: false }) ?? { mtimeMs: now };
      if (mtimeMs + EXPIRES_AFTER_MS <= now && !this.#busy.has(uploadId)) this.abort(uploadId);
    }
  }

  #open(uploadId: string, flags: number): { note: Note; dir: Fd; draft: Fd } {
    const note = readSmallJson(this.#noteOf(uploadId), Note);
    if (note === undefined) throw unknown(uploadId);
    try {
      return { note, ...openDraft(note, flags) };
    } catch (error) {
      if (error instanceof FsError) throw unknown(uploadId);
      throw error;
    }
  }

  #touch(uploadId: string): void {
    const now = new Date();
    utimesSync(this.#noteOf(uploadId), now, now);
  }

  #ids(): string[] {
    try {
      return readdirSync(this.#dir);
    } catch {
      return [];
    }
  }

  #noteOf(uploadId: string): string {
    return join(this.#dir, uploadId);
  }
}

function openDraft(note: Note, flags: number): { dir: Fd; draft: Fd } {
  const dir = open(Buffer.from(note.dir, "base64"), { flags: O.PATH | O.DIRECTORY, resolve: resolve.freely });
  try {
    const draft = open(Buffer.from(note.name), {
      at: dir.fd,
      flags: flags | O.NOFOLLOW,
      resolve: resolve.plainly,
    });
    return { dir, draft };
  } catch (error) {
    dir[Symbol.dispose]();
    throw error;
  }
}

function isThere(note: Note): boolean {
  try {
    const { dir, draft } = openDraft(note, O.PATH);
    using _ = dir;
    using file = draft;
    return typeOf(stat(file.fd, Buffer.alloc(0))) === "file";
  } catch {
    return false;
  }
}

function removeDraft(note: Note): void {
  try {
    using dir = open(Buffer.from(note.dir, "base64"), {
      flags: O.PATH | O.DIRECTORY,
      resolve: resolve.freely,
    });
    unlink(dir.fd, Buffer.from(note.name));
  } catch (error) {
    if (!(error instanceof FsError)) throw error;
  }
}

function targetOf({ path, root }: Note): Target {
  return {
    path: Buffer.from(path, "base64"),
    root: root === undefined ? undefined : Buffer.from(root, "base64"),
  };
}

function unknown(uploadId: string): HoldfastError {
  return new HoldfastError("not_found", `there is no upload ${uploadId}`, {
    hint: "it is done, was aborted, or nothing came for a day: begin it again",
    details: { uploadId },
  });
}

function notHere(uploadId: string, offset: number): HoldfastError {
  return new HoldfastError(
    "wrong_state",
    `upload ${uploadId} does not go on there: ${offset} bytes have arrived`,
    {
      hint: "send the part that begins at details.offset, one part at a time",
      details: { uploadId, offset },
    },
  );
}

function taken(uploadId: string): HoldfastError {
  return new HoldfastError("already_exists", `upload ${uploadId} is for another path`, {
    details: { uploadId },
  });
}

function damaged(uploadId: string): HoldfastError {
  return new HoldfastError(
    "precondition_failed",
    `upload ${uploadId} does not have the content that sha256 says`,
    {
      hint: "the file was changed while it was sent: abort the upload and begin again",
      details: { uploadId },
    },
  );
}
