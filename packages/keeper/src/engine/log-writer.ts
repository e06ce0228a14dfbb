import { closeSync, constants, ftruncateSync, mkdirSync, openSync, rmSync, writevSync } from "node:fs";
import { FRAME_HEADER_BYTES, frameKind, writeFrameHeader } from "@holdfast/protocol";
import { isMissing } from "./disk-errors.ts";
import { Followers } from "./followers.ts";
import { segmentPath } from "./log-files.ts";
import { Wake } from "./wake.ts";

export type Stream = "stdout" | "stderr";

// 64 MiB a log: hours of a chatty server, and 20 of them still fit on a small disk. Eight segments, so that the oldest
// eighth goes at a time and at least 56 MiB can always be read.
export const SEGMENT_BYTES = 8 * 1024 * 1024;
export const SEGMENTS = 8;
// Small enough for a reader to hold a few, large enough that headers cost nothing.
const MAX_PAYLOAD_BYTES = 128 * 1024;

const APPEND =
  constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * The writing end of one log. Bytes are in the page cache when `write` returns, so a reader sees them at once and they
 * outlive the keeper. Nothing is made on disk before the first byte. A disk that is full never stops the program:
 * what could not be kept is missing from the log, and its readers are told exactly which bytes.
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
  #segmentBytes = 0;
  #bytesOnDisk = 0;
  #nextOffset = 0;
  #closed = false;

  constructor(options: { dir: string; id: string }) {
    this.#dir = options.dir;
    this.id = options.id;
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

  write(stream: Stream, bytes: Uint8Array): void {
    if (this.#closed) return;
    for (let at = 0; at < bytes.length; at += MAX_PAYLOAD_BYTES) {
      this.#append(stream, bytes.subarray(at, at + MAX_PAYLOAD_BYTES));
    }
    this.changed.ring();
  }

  /** May be called twice. What was written stays readable. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closeSegment();
    this.changed.ring();
  }

  #append(stream: Stream, payload: Uint8Array): void {
    writeFrameHeader(this.#header, {
      kind: frameKind[stream],
      length: payload.length,
      offset: this.#nextOffset,
    });
    const frameBytes = FRAME_HEADER_BYTES + payload.length;
    try {
      if (this.#fd === undefined || this.#segmentBytes + frameBytes > SEGMENT_BYTES) this.#openSegment();
      this.#writeFrame(payload, frameBytes);
    } catch {
      // A full or vanished disk. The offset still advances below, so readers see a gap of exactly these bytes.
      this.#closeSegment();
    }
    this.#nextOffset += payload.length;
  }

  #writeFrame(payload: Uint8Array, frameBytes: number): void {
    const fd = this.#fd;
    if (fd === undefined) return;
    if (writevSync(fd, [this.#header, payload]) === frameBytes) {
      this.#segmentBytes += frameBytes;
      this.#bytesOnDisk += frameBytes;
      return;
    }
    ftruncateSync(fd, this.#segmentBytes); // half a frame would hide all that follow
    this.#closeSegment();
  }

  #openSegment(): void {
    this.#closeSegment();
    const path = segmentPath(this.#dir, { id: this.id, start: this.#nextOffset });
    rmSync(path, { force: true, recursive: true }); // left by an id that was used before a lost journal
    this.#fd = openMakingDirectory(path);
    this.#starts.push(this.#nextOffset);
    if (this.#starts.length > SEGMENTS) this.#dropOldest();
  }

  #dropOldest(): void {
    const start = this.#starts.shift();
    if (start !== undefined) rmSync(segmentPath(this.#dir, { id: this.id, start }), { force: true });
    this.#bytesOnDisk = Math.min(this.#bytesOnDisk, SEGMENTS * SEGMENT_BYTES);
  }

  #closeSegment(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#segmentBytes = 0;
  }
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
