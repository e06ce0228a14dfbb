import {
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
  writevSync,
} from "node:fs";
import { FRAME_HEADER_BYTES, frameKind, writeFrameHeader } from "@holdfast/protocol/log-frames";
import { isMissing } from "./disk-errors.ts";
import { Followers } from "./followers.ts";
import { segmentPath } from "./log-files.ts";
import { logPlaces } from "./log-places.ts";
import { payloadCheck } from "./payload-check.ts";
import { recycleSegment } from "./recycle-segment.ts";
import { Wake } from "./wake.ts";

export type Stream = "stdout" | "stderr";

// 64 MiB a log: hours of a chatty server, and 20 of them still fit on a small disk. Eight segments, so that the oldest
// eighth goes at a time and at least 56 MiB can always be read.
export const SEGMENT_BYTES = 8 * 1024 * 1024;
export const SEGMENTS = 8;
// Small enough for a reader to hold a few, large enough that headers cost nothing.
export const MAX_PAYLOAD_BYTES = 256 * 1024;

const APPEND =
  constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_EXCL | constants.O_NOFOLLOW;

// Of frames. Most commands say a line or nothing, and to make a file takes longer than to run some of them.
export const SHORT_LOG_BYTES = 512;

/**
 * The writing end of one log. Bytes are in the page cache when `write` returns, so a reader sees them at once and they
 * outlive the keeper: those of a short log are in the journal, and one that grows has files of its own. A disk that is
 * full never stops the program: what could not be kept is missing from the log, and its readers are told exactly which
 * bytes.
 */
export class LogWriter {
  readonly id: string;
  readonly changed = new Wake();
  /** Two segments less than the ring: a reader that is waited for must never be overtaken by what is on its way. */
  readonly followers = new Followers({ maxLagBytes: (SEGMENTS - 2) * SEGMENT_BYTES });
  readonly #dir: string;
  readonly #starts: number[] = [];
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #fd: number | undefined;
  #path = "";
  #segmentBytes = 0;
  #bytesOnDisk = 0;
  #nextOffset = 0;
  #closed = false;
  readonly #journal: ((frame: Uint8Array) => boolean) | undefined;
  #short: Uint8Array | undefined;

  /** `journal` keeps a frame of a short log, or says that it cannot; without it every log has files. */
  constructor(options: { dir: string; id: string; journal?: (frame: Uint8Array) => boolean }) {
    this.#dir = options.dir;
    this.id = options.id;
    this.#journal = options.journal;
    if (options.journal !== undefined) this.#short = new Uint8Array(0);
  }

  /** The whole log, as long as it is short and has no file. */
  get short(): Uint8Array | undefined {
    return this.#short;
  }

  get dir(): string {
    return this.#dir;
  }

  get starts(): readonly number[] {
    return this.#starts;
  }

  get range(): { firstOffset: number; nextOffset: number } {
    return { firstOffset: this.#starts[0] ?? 0, nextOffset: this.#nextOffset };
  }

  get bytesOnDisk(): number {
    return this.#bytesOnDisk;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when those who follow the log can take more; `undefined` if they can at once. */
  room(): Promise<void> | undefined {
    return this.followers.room(this.#nextOffset);
  }

  /** The pieces follow each other. Few of them become one frame. */
  write(stream: Stream, ...pieces: Uint8Array[]): void {
    if (this.#closed) return;
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (length <= MAX_PAYLOAD_BYTES) this.#append(stream, pieces, length);
    else for (const piece of pieces) this.#cut(stream, piece);
    this.changed.ring();
  }

  /** May be called twice. What was written stays readable. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closeSegment();
    this.changed.ring();
  }

  #cut(stream: Stream, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += MAX_PAYLOAD_BYTES) {
      const part = bytes.subarray(at, at + MAX_PAYLOAD_BYTES);
      this.#append(stream, [part], part.length);
    }
  }

  #append(stream: Stream, payload: readonly Uint8Array[], length: number): void {
    if (length === 0) return;
    writeFrameHeader(this.#header, {
      kind: frameKind[stream],
      check: payloadCheck(payload),
      length,
      offset: this.#nextOffset,
    });
    const frameBytes = FRAME_HEADER_BYTES + length;
    if (this.#staysShort(payload, frameBytes)) {
      this.#nextOffset += length;
      return;
    }
    try {
      this.#moveToFile();
      if (this.#fd === undefined || this.#segmentBytes + frameBytes > SEGMENT_BYTES) this.#openSegment();
      this.#writeFrame(payload, frameBytes);
    } catch {
      // A full or vanished disk. The offset still advances below, so readers see a gap of exactly these bytes.
      this.#closeSegment();
    }
    this.#nextOffset += length;
  }

  #staysShort(payload: readonly Uint8Array[], frameBytes: number): boolean {
    const before = this.#short;
    if (before === undefined || before.length + frameBytes > SHORT_LOG_BYTES) return false;
    const after = Buffer.concat([before, this.#header, ...payload]);
    if (this.#journal?.(after.subarray(before.length)) !== true) return false;
    this.#short = after;
    this.#bytesOnDisk = after.length;
    return true;
  }

  /** What was short begins the first file. Until that is written, the journal has it. */
  #moveToFile(): void {
    const short = this.#short;
    if (short === undefined) return;
    this.#short = undefined;
    this.#bytesOnDisk = 0;
    if (short.length === 0) return;
    this.#openSegment(0);
    const fd = this.#fd;
    if (fd === undefined || writeSync(fd, short) !== short.length) throw new Error("the disk is full");
    this.#segmentBytes = short.length;
    this.#bytesOnDisk = short.length;
  }

  #writeFrame(payload: readonly Uint8Array[], frameBytes: number): void {
    const fd = this.#fd;
    if (fd === undefined) return;
    if (writevSync(fd, [this.#header, ...payload]) === frameBytes) {
      logPlaces.remember(this.#path, { offset: this.#nextOffset, at: this.#segmentBytes });
      this.#segmentBytes += frameBytes;
      this.#bytesOnDisk += frameBytes;
      return;
    }
    ftruncateSync(fd, this.#segmentBytes); // half a frame would hide all that follow
    this.#closeSegment();
  }

  #openSegment(start = this.#nextOffset): void {
    this.#closeSegment();
    const path = segmentPath(this.#dir, { id: this.id, start });
    this.#fd = this.#recycled(path) ?? newSegment(path);
    this.#path = path;
    logPlaces.forget(path);
    this.#starts.push(start);
    if (this.#starts.length > SEGMENTS) this.#dropOldest();
  }

  #recycled(path: string): number | undefined {
    const [start] = this.#starts;
    if (start === undefined || this.#starts.length < SEGMENTS) return undefined;
    return recycleSegment({ from: segmentPath(this.#dir, { id: this.id, start }), to: path });
  }

  #dropOldest(): void {
    const start = this.#starts.shift();
    if (start !== undefined) this.#removeSegment(segmentPath(this.#dir, { id: this.id, start }));
    this.#bytesOnDisk = Math.min(this.#bytesOnDisk, SEGMENTS * SEGMENT_BYTES);
  }

  /** One that was recycled is not there any more. */
  #removeSegment(path: string): void {
    logPlaces.forget(path);
    rmSync(path, { force: true, recursive: true });
  }

  #closeSegment(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#segmentBytes = 0;
  }
}

function newSegment(path: string): number {
  rmSync(path, { force: true, recursive: true }); // left by an id that was used before a lost journal
  return openMakingDirectory(path);
}

function openMakingDirectory(path: string): number {
  try {
    return openSync(path, APPEND, 0o600);
  } catch (error) {
    if (!isMissing(error)) throw error;
    mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o700 }); // the work may delete anything
    return openSync(path, APPEND, 0o600);
  }
}
