import { mkdirSync, readdirSync, readlinkSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lazily } from "@holdfast/protocol";
import { z } from "zod";
import { readSmallJson } from "../engine/small-file.ts";
import { FsError, O, open, resolve } from "./fs-calls.ts";
import { removeTree } from "./remove.ts";

/**
 * What is not whole yet lies beside the place where it will be, because only there a rename can put it in place. Each
 * such name is written down first; the next keeper removes those that a killed one left.
 */
export const PENDING_PREFIX = ".holdfast-tmp-";

const Note = lazily(() =>
  z.object({ dir: z.base64(), name: z.string().regex(/^\.holdfast-tmp-[0-9a-f]{24}$/) }),
);

export interface PendingName {
  readonly name: Buffer;
  /** It was moved into place, or removed. May be called twice. */
  done(): void;
}

export class Pending {
  readonly #dir: string;
  readonly #mine = new Set<string>();

  constructor(stateDir: string) {
    this.#dir = join(stateDir, "files", "pending");
  }

  /** A name that nobody has yet, in an open directory; to be made by the caller. */
  add(dirFd: number): PendingName {
    const id = crypto.getRandomValues(Buffer.alloc(12)).toString("hex");
    const name = `${PENDING_PREFIX}${id}`;
    const note = join(this.#dir, id);
    const dir = readlinkSync(`/proc/self/fd/${dirFd}`, { encoding: "buffer" });
    this.#mine.add(id);
    const done = () => {
      if (this.#mine.delete(id)) removeNote(note);
    };
    try {
      this.#write(note, JSON.stringify({ dir: dir.toString("base64"), name }));
    } catch (error) {
      done();
      throw error;
    }
    return { name: Buffer.from(name), done };
  }

  /** Half a note is as good as none: what it would be of is made only when all of it is there. */
  #write(note: string, text: string): void {
    const options = { mode: 0o600, flag: "wx" };
    try {
      writeFileSync(note, text, options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 }); // the first one; or the work has deleted it
      writeFileSync(note, text, options);
    }
  }

  /** Removes what an earlier keeper was killed over. */
  async recover(): Promise<void> {
    for (const id of this.#notes()) {
      const path = join(this.#dir, id);
      const note = readSmallJson(path, Note);
      if (note !== undefined) await removeLeftover(Buffer.from(note.dir, "base64"), Buffer.from(note.name));
      rmSync(path, { force: true, recursive: true });
    }
  }

  #notes(): string[] {
    try {
      return readdirSync(this.#dir).filter((id) => !this.#mine.has(id));
    } catch {
      return [];
    }
  }
}

function removeNote(note: string): void {
  try {
    unlinkSync(note);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error; // the work may delete anything
  }
}

/** Its directory may be gone, or be something else by now: then there is nothing of ours. */
async function removeLeftover(dir: Buffer, name: Buffer): Promise<void> {
  try {
    using parent = open(dir, { flags: O.PATH | O.DIRECTORY, resolve: resolve.freely });
    await removeTree({ dirFd: parent.fd, name });
  } catch (error) {
    if (!(error instanceof FsError)) throw error;
  }
}
