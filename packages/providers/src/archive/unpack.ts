import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  futimesSync,
  lchownSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import type { TarEntry, TarMember } from "@holdfast/protocol/tar";
import { EntryCheck } from "./check-entry.ts";
import { TimeSlice } from "./time-slice.ts";

/** A block of zeros is left out: it becomes a hole again. */
const HOLE_BYTES = 4096;

export interface UnpackOptions {
  /** Nobody else may look into it, and in it are the parts, empty. */
  readonly dir: string;
  readonly parts: readonly string[];
  /** Whose everything becomes; `undefined` where we are no root. */
  readonly uid: number | undefined;
  readonly roomBytes: number;
  onProgress(bytes: number): void;
  readonly signal: AbortSignal;
}

/** Puts the entries of an archive that anybody may have made into a directory, or throws. */
export async function unpack(members: AsyncIterable<TarMember>, options: UnpackOptions): Promise<void> {
  const { signal, onProgress } = options;
  const unpacking = new Unpacking(options);
  const slice = new TimeSlice();
  for await (const member of members) {
    signal.throwIfAborted();
    await slice.pause();
    await unpacking.add(member);
    onProgress(unpacking.bytes);
  }
  unpacking.finish();
}

class Unpacking {
  readonly #options: UnpackOptions;
  readonly #check: EntryCheck;
  /** They get their modes and times last: what is put into them would change those, or be refused. */
  readonly #directories: { place: Buffer; entry: TarEntry }[] = [];
  bytes = 0;

  constructor(options: UnpackOptions) {
    this.#options = options;
    this.#check = new EntryCheck(options);
  }

  async add({ entry, data }: TarMember): Promise<void> {
    const names = this.#check.check(entry);
    const place = this.#place(names);
    const { uid } = this.#options;
    switch (entry.type) {
      case "directory":
        if (names.length > 1) mkdirSync(place, 0o700);
        if (uid !== undefined) lchownSync(place, uid, uid);
        if (names.length > 1) this.#directories.push({ place, entry });
        return;
      case "symlink":
        symlinkSync(Buffer.from(entry.target), place);
        if (uid !== undefined) lchownSync(place, uid, uid);
        lutimesSync(place, entry.mtime, entry.mtime);
        return;
      case "link":
        linkSync(this.#place(this.#check.checkTarget(entry)), place);
        return;
      case "file":
        return this.#file(place, entry, data);
      default:
        return entry.type satisfies never;
    }
  }

  finish(): void {
    this.#check.finish();
    for (const { place, entry } of this.#directories.reverse()) {
      chmodSync(place, entry.mode);
      utimesSync(place, entry.mtime, entry.mtime);
    }
  }

  async #file(place: Buffer, entry: TarEntry, data: TarMember["data"]): Promise<void> {
    const { uid } = this.#options;
    const fd = openSync(place, NEW_FILE, 0o600);
    try {
      for await (const { offset, bytes } of data) {
        writeWithHoles(fd, offset, bytes);
        this.bytes += bytes.length;
      }
      ftruncateSync(fd, entry.sizeBytes);
      // In this order: to give a file away takes its set-uid bit.
      if (uid !== undefined) fchownSync(fd, uid, uid);
      fchmodSync(fd, entry.mode);
      futimesSync(fd, entry.mtime, entry.mtime);
    } finally {
      closeSync(fd);
    }
  }

  #place(names: readonly Buffer[]): Buffer {
    const slash = Buffer.from("/");
    return Buffer.concat([Buffer.from(this.#options.dir), ...names.flatMap((name) => [slash, name])]);
  }
}

/** Only one that is not there yet, and through no link. */
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function writeWithHoles(fd: number, offset: number, bytes: Uint8Array): void {
  let from = 0;
  for (let at = 0; at < bytes.length; at += HOLE_BYTES) {
    const block = bytes.subarray(at, at + HOLE_BYTES);
    if (!isZero(block)) continue;
    writeAll(fd, bytes.subarray(from, at), offset + from);
    from = at + block.length;
  }
  writeAll(fd, bytes.subarray(from), offset + from);
}

function isZero(block: Uint8Array): boolean {
  return block.length === HOLE_BYTES ? ZEROS.equals(block) : false;
}

const ZEROS = Buffer.alloc(HOLE_BYTES);

function writeAll(fd: number, bytes: Uint8Array, offset: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, offset + at);
}
