import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { lazily } from "@holdfast/protocol";
import { z } from "zod";
import { jsonOf, readRegular } from "../engine/small-file.ts";
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

const MAX_NOTE_BYTES = 64 * 1024; // a path of 4 KiB, with room

export interface PendingName {
  readonly name: Buffer;
  /** It was moved into place, or removed. May be called twice. */
  done(): void;
}

export class Pending {
  readonly #dir: string;
  /** Notes that are this keeper's, by their file's name. */
  readonly #mine = new Set<string>();
  /** One of them that is of nothing any more, kept while somebody has many to make. */
  #spare: string | undefined;
  #series = 0;

  constructor(stateDir: string) {
    this.#dir = join(stateDir, "files", "pending");
  }

  /** A name that nobody has yet, in an open directory; to be made by the caller. */
  add(dirFd: number): PendingName {
    const name = `${PENDING_PREFIX}${randomId()}`;
    const dir = readlinkSync(`/proc/self/fd/${dirFd}`, { encoding: "buffer" });
    const id = this.#write(`${JSON.stringify({ dir: dir.toString("base64"), name })}\n`);
    let isDone = false;
    const done = () => {
      if (!isDone) this.#release(id);
      isDone = true;
    };
    return { name: Buffer.from(name), done };
  }

  /** Until it is disposed of, names that are added one after the other share a note. */
  series(): Disposable {
    this.#series += 1;
    return { [Symbol.dispose]: () => this.#endSeries() };
  }

  /** Removes what an earlier keeper was killed over. */
  async recover(): Promise<void> {
    for (const id of this.#notes()) {
      const path = join(this.#dir, id);
      const note = readNote(path);
      if (note !== undefined) await removeLeftover(Buffer.from(note.dir, "base64"), Buffer.from(note.name));
      rmSync(path, { force: true, recursive: true });
    }
  }

  /**
   * Over a spare note, if there is one: a file made and removed for each would be half of the files that are made. Half a
   * note is as good as none, because nothing is made under its name before it is whole.
   */
  #write(text: string): string {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare !== undefined) {
      if (isWrittenOver(join(this.#dir, spare), text)) return spare;
      this.#mine.delete(spare);
    }
    const id = randomId();
    this.#mine.add(id);
    try {
      this.#create(join(this.#dir, id), text);
    } catch (error) {
      this.#remove(id);
      throw error;
    }
    return id;
  }

  #create(note: string, text: string): void {
    const options = { mode: 0o600, flag: "wx" };
    try {
      writeFileSync(note, text, options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 }); // the first one; or the work has deleted it
      writeFileSync(note, text, options);
    }
  }

  /** What it says may stay: nobody will ever have that name again. */
  #release(id: string): void {
    if (this.#series > 0 && this.#spare === undefined) this.#spare = id;
    else this.#remove(id);
  }

  #endSeries(): void {
    this.#series -= 1;
    if (this.#series > 0 || this.#spare === undefined) return;
    const spare = this.#spare;
    this.#spare = undefined;
    this.#remove(spare);
  }

  #remove(id: string): void {
    rmSync(join(this.#dir, id), { force: true });
    this.#mine.delete(id);
  }

  #notes(): string[] {
    try {
      return readdirSync(this.#dir).filter((id) => !this.#mine.has(id));
    } catch {
      return [];
    }
  }
}

/** False if it is gone, or the work has put something else there: then another is made. */
function isWrittenOver(note: string, text: string): boolean {
  const { O_WRONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const fd = openSync(note, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      return writeSync(fd, text, 0) === Buffer.byteLength(text);
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** Its first line; behind it may be the rest of a longer one that it was written over. */
function readNote(path: string) {
  const text = readRegular(path, { maxBytes: MAX_NOTE_BYTES })?.toString() ?? "";
  const parsed = Note.safeParse(jsonOf(text.split("\n", 1)[0] ?? ""));
  return parsed.success ? parsed.data : undefined;
}

function randomId(): string {
  return crypto.getRandomValues(Buffer.alloc(12)).toString("hex");
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
