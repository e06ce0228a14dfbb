import { HoldfastError } from "@holdfast/protocol";
import type { TarEntry } from "@holdfast/protocol/tar";
import { MAX_PATH_BYTES } from "./walk.ts";

/** As long as file systems take a name. */
const MAX_NAME_BYTES = 255;
/** What a name costs, whatever is in it. */
const ENTRY_BYTES = 4096;

/**
 * Looks at every entry of an archive that anybody may have made, before anything is done about it. What it lets pass is
 * within the parts, in a directory that was an entry before, under a name that nothing had yet: so no link that came
 * with the archive is ever gone through.
 */
export class EntryCheck {
  readonly #parts: readonly string[];
  readonly #roomBytes: number;
  readonly #directories = new Set<string>();
  readonly #files = new Set<string>();
  #bytes = 0;

  constructor({ parts, roomBytes }: { parts: readonly string[]; roomBytes: number }) {
    this.#parts = parts;
    this.#roomBytes = roomBytes;
  }

  /** Refuses it with `invalid_argument`, or gives its names, that of its part first. */
  check(entry: TarEntry): Buffer[] {
    const names = namesIn(entry.path);
    const path = keyOf(names);
    if (names.length === 0 || !this.#parts.includes(String(names[0])))
      throw refused(entry, "is outside of what a snapshot has");
    const isPart = names.length === 1;
    if (isPart && entry.type !== "directory") throw refused(entry, "must be a directory");
    if (this.#directories.has(path) || this.#files.has(path)) throw refused(entry, "comes twice");
    if (!isPart && !this.#directories.has(keyOf(names.slice(0, -1))))
      throw refused(entry, "is in no directory that came before");
    if (entry.type === "symlink" && (entry.target.length === 0 || entry.target.length > MAX_PATH_BYTES))
      throw refused(entry, "leads nowhere");
    if (entry.type === "symlink" && entry.target.includes(0)) throw refused(entry, "leads nowhere");
    this.#count(entry);
    if (entry.type === "directory") this.#directories.add(path);
    else this.#files.add(path);
    return names;
  }

  /** The names of the file that a hard link is another name of: one that came before. */
  checkTarget(entry: TarEntry): Buffer[] {
    const names = namesIn(entry.target);
    if (!this.#files.has(keyOf(names))) throw refused(entry, "is a second name of nothing that came before");
    return names;
  }

  /** Every part must have been there, though it may be empty. */
  finish(): void {
    const missing = this.#parts.find((part) => !this.#directories.has(part));
    if (missing === undefined) return;
    throw new HoldfastError("invalid_argument", `the archive has no ${missing}`, { started: "no" });
  }

  #count({ path, sizeBytes, sparse }: TarEntry): void {
    const data = sparse === undefined ? sizeBytes : sparse.reduce((sum, { length }) => sum + length, 0);
    this.#bytes += ENTRY_BYTES + data;
    if (this.#bytes <= this.#roomBytes) return;
    throw new HoldfastError(
      "capacity_exhausted",
      `there is no room for this archive: ${Math.floor(this.#roomBytes)} bytes may be used, and ${shown(path)} is past that`,
      { hint: "delete what is not needed (`holdfast snapshot ls`), then try again", started: "no" },
    );
  }
}

/** Between the slashes; refuses what a path could mean something else by. */
function namesIn(path: Uint8Array): Buffer[] {
  const whole = Buffer.from(path);
  if (whole.length > MAX_PATH_BYTES) throw badPath(whole, "is too long");
  const trimmed = whole.at(-1) === SLASH ? whole.subarray(0, -1) : whole;
  const names: Buffer[] = [];
  for (let from = 0; from <= trimmed.length; ) {
    const at = trimmed.indexOf(SLASH, from);
    const end = at === -1 ? trimmed.length : at;
    names.push(trimmed.subarray(from, end));
    from = end + 1;
  }
  for (const name of names) {
    if (name.length === 0) throw badPath(whole, "is absolute, or has an empty name in it");
    if (name.equals(DOT) || name.equals(DOTS)) throw badPath(whole, "has . or .. in it");
    if (name.length > MAX_NAME_BYTES) throw badPath(whole, "has too long a name in it");
    if (name.includes(0)) throw badPath(whole, "has a NUL in it");
  }
  return names;
}

const SLASH = 0x2f;
const DOT = Buffer.from(".");
const DOTS = Buffer.from("..");

/** Bytes as they are, one character each. */
function keyOf(names: readonly Buffer[]): string {
  return names.map((name) => name.toString("latin1")).join("/");
}

function refused({ path }: TarEntry, why: string): HoldfastError {
  return badPath(path, why);
}

function badPath(path: Uint8Array, why: string): HoldfastError {
  return new HoldfastError("invalid_argument", `the archive is refused: ${shown(path)} ${why}`, {
    hint: "Nothing of it is kept. Give what `holdfast export` has written.",
    started: "no",
  });
}

function shown(path: Uint8Array): string {
  return JSON.stringify(Buffer.from(path.subarray(0, 80)).toString("utf8"));
}
