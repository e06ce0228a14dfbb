import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { CHOSEN_ID } from "@holdfast/protocol/chosen-id";
import {
  byTag,
  integer,
  listOf,
  number,
  object,
  oneOf,
  type Shape,
  shape,
  text,
  which,
} from "@holdfast/protocol/plain-check";
import { type RunEnd, type RunRecord, runEnd, runRecord, shortLog } from "./record.ts";

/** One line of the journal. */
export type JournalLine =
  | { line: "begin"; record: RunRecord }
  | { line: "started"; id: string; pid: number }
  /** Of a short log, a frame as base64. */
  | { line: "output"; id: string; frame: string }
  | { line: "end"; id: string; end: RunEnd }
  /** Takes back a `begin` whose program could not be started. */
  | { line: "void"; id: string }
  | { line: "expired"; id: string }
  /** Short hashes of expired ids that callers chose. */
  | { line: "remember"; hashes: number[] };

// An id becomes a file name: one that could mean a path was forged.
const id = which(text, (value) => CHOSEN_ID.test(value), "Invalid id");

const JournalLine: Shape<JournalLine> = shape(
  byTag("line", {
    begin: object({
      line: oneOf(["begin"]),
      record: which(runRecord, (record) => CHOSEN_ID.test(record.id), "Invalid id"),
    }),
    started: object({ line: oneOf(["started"]), id, pid: integer }),
    output: object({ line: oneOf(["output"]), id, frame: shortLog }),
    end: object({ line: oneOf(["end"]), id, end: runEnd }),
    void: object({ line: oneOf(["void"]), id }),
    expired: object({ line: oneOf(["expired"]), id }),
    remember: object({ line: oneOf(["remember"]), hashes: listOf(number) }),
  }),
);

// The work inside can write here: more than this was not written by us, and is not read.
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024;
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * An append-only file of lines, written before and after each run. It decides nothing; it only brings back what was
 * appended. A torn last line, garbage between lines and a file that is no file are survived.
 *
 * A line is in the page cache when `append` returns, which outlives any death of the keeper, the instance and the
 * server. It is not synced to the disk before the spawn: an append takes 0.008 ms, with fdatasync 0.8 ms at p50 and 4 at
 * p95 (as long as a whole command), and that would only matter after a power failure of the host, which ends every
 * instance and which the caller sees as a new generation.
 */
export class Journal {
  readonly #path: string;
  readonly #reserve: Reserve;
  #fd: number;
  #size: number;
  /** Lines that found no room yet, oldest first: ends of runs, so at most as many as ran at once. */
  #waiting = "";

  constructor(path: string) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.#fd = openRegular(path);
    this.#size = fstatSync(this.#fd).size;
    this.#reserve = new Reserve(`${path}.reserve`);
  }

  get bytes(): number {
    return this.#size;
  }

  read(): JournalLine[] {
    const bytes = Buffer.allocUnsafe(Math.min(this.#size, MAX_JOURNAL_BYTES));
    const count = readSync(this.#fd, bytes, 0, bytes.length, Math.max(0, this.#size - MAX_JOURNAL_BYTES));
    const lines = bytes.toString("utf8", 0, count).split("\n");
    return lines.map(parseLine).filter((line) => line !== undefined);
  }

  /** Throws if it is not in the file afterwards; then nothing may be done that it announces. */
  append(line: JournalLine): void {
    this.#write(`${this.#waiting}${JSON.stringify(line)}\n`);
    this.#waiting = "";
  }

  /** False if there is no room; what is kept for ends and beginnings of runs is not used for it. */
  appendIfRoom(line: JournalLine): boolean {
    try {
      this.#write(`${this.#waiting}${JSON.stringify(line)}\n`, { inReserve: false });
      this.#waiting = "";
      return true;
    } catch {
      return false;
    }
  }

  /** For what has already happened: if there is no room, it is written before the next line that finds some. */
  appendWhenPossible(line: JournalLine): void {
    try {
      this.append(line);
      this.#reserve.restore();
    } catch {
      this.#waiting += `${JSON.stringify(line)}\n`;
    }
  }

  /** Replaces the whole file at once; on failure the old one stays. */
  rewrite(lines: Iterable<JournalLine>): void {
    const path = `${this.#path}.new`;
    rmSync(path, { force: true, recursive: true });
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const fd = openRegular(path);
    try {
      const bytes = Buffer.from([...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
      writeWhole(fd, bytes);
      renameSync(path, this.#path);
      closeSync(this.#fd);
      this.#fd = fd;
      this.#size = bytes.length;
      this.#waiting = "";
    } catch (error) {
      closeSync(fd);
      rmSync(path, { force: true });
      throw error;
    }
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }

  #write(text: string, { inReserve = true } = {}): void {
    const bytes = Buffer.from(text);
    try {
      writeWhole(this.#fd, bytes);
    } catch (error) {
      ftruncateSync(this.#fd, this.#size); // half a line would spoil the next one
      if (!inReserve || !this.#reserve.release()) throw error;
      this.#write(text);
      return;
    }
    this.#size += bytes.length;
  }
}

// Room for some 400 commands after the disk is full: enough to find out why, and to delete something.
const RESERVE_BYTES = 256 * 1024;

/** Space that is kept occupied so that it can be given to the journal when the disk is full. */
class Reserve {
  readonly #path: string;
  #held = false;

  constructor(path: string) {
    this.#path = path;
    this.restore();
  }

  restore(): void {
    if (this.#held) return;
    try {
      rmSync(this.#path, { force: true, recursive: true });
      writeFileSync(this.#path, new Uint8Array(RESERVE_BYTES), { mode: 0o600, flag: "wx" });
      this.#held = true;
    } catch {
      rmSync(this.#path, { force: true, recursive: true }); // no room: what is left is the journal's
    }
  }

  /** False if there was nothing to give. */
  release(): boolean {
    if (!this.#held) return false;
    this.#held = false;
    rmSync(this.#path, { force: true, recursive: true });
    return true;
  }
}

function parseLine(line: string): JournalLine | undefined {
  if (line === "") return undefined;
  try {
    const parsed = JournalLine.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined; // torn by a crash, or forged
  }
}

function openRegular(path: string): number {
  try {
    const fd = openSync(path, FLAGS, 0o600);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch {
    // A directory, a link or a pipe where the file belongs: it was not made by us.
  }
  rmSync(path, { force: true, recursive: true });
  return openSync(path, FLAGS, 0o600);
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at);
}
