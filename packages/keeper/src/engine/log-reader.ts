import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import {
  FRAME_HEADER_BYTES,
  frameKind,
  MAX_FRAME_BYTES,
  readFrameHeader,
  writeFrameHeader,
} from "@holdfast/protocol/log-frames";
import { segmentPath } from "./log-files.ts";
import { logPlaces } from "./log-places.ts";
import { MAX_PAYLOAD_BYTES } from "./log-writer.ts";
import { payloadCheck } from "./payload-check.ts";
import { keepForReading } from "./recycle-segment.ts";

/** What a reader needs of a log, whether it is still being written or was found on disk. */
export interface LogSource {
  readonly id: string;
  readonly dir: string;
  readonly starts: readonly number[];
  /** All of its frames, if it is short and has no file. */
  readonly short?: Uint8Array | undefined;
  readonly range: { readonly firstOffset: number; readonly nextOffset: number };
}

/** Whole frames as they are on disk, or the bytes that are no longer there. */
export type LogPiece =
  | { type: "frames"; bytes: Uint8Array }
  | { type: "truncated"; from: number; to: number };

// One read, which the largest frame fits in. A follower holds one such buffer at most, however much it is behind.
const READ_BYTES = FRAME_HEADER_BYTES + MAX_PAYLOAD_BYTES;
// O_NONBLOCK and O_NOFOLLOW: the work inside may have put a pipe or a link where a segment was.
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads one log from an offset, at its caller's pace, straight from disk. It keeps the segment it is in open, so that
 * a segment which the ring drops meanwhile is still read to its end. Everything on disk may have been forged by the
 * work, so nothing is believed: what does not continue the log is reported as truncated.
 */
export class LogReader {
  readonly #log: LogSource;
  #offset: number;
  #segment: { path: string; fd: number; start: number; at: number; letGo: () => void } | undefined;

  constructor(log: LogSource, since: number) {
    this.#log = log;
    this.#offset = since;
  }

  /** Where the next piece begins. */
  get offset(): number {
    return this.#offset;
  }

  /** The next piece, or `undefined` when all that was written has been read. */
  next(): LogPiece | undefined {
    while (this.#offset < this.#log.range.nextOffset) {
      const { short } = this.#log;
      // A copy: a frame is cut by writing over it.
      if (short !== undefined)
        return this.#wantedPart(new Uint8Array(short)).piece ?? this.#gapTo(this.#log.range.nextOffset);
      if (this.#segment === undefined && !this.#open()) return this.#gapTo(this.#log.range.nextOffset);
      const piece = this.#read();
      if (piece !== undefined) return piece;
      const gap = this.#leaveSegment();
      if (gap !== undefined) return gap;
    }
    return undefined;
  }

  /** May be called twice. */
  close(): void {
    if (this.#segment === undefined) return;
    closeSync(this.#segment.fd);
    this.#segment.letGo();
    this.#segment = undefined;
  }

  /** Opens the segment that has the offset, or the first later one that can be opened. */
  #open(): boolean {
    const { starts, id, dir } = this.#log;
    const first = Math.max(
      0,
      starts.findLastIndex((start) => start <= this.#offset),
    );
    for (const start of starts.slice(first)) {
      const path = segmentPath(dir, { id, start });
      const fd = openSegment(path);
      if (fd === undefined) continue;
      this.#segment = { path, fd, start, at: this.#knownPlace(path, fd), letGo: keepForReading(path) };
      return true;
    }
    return false;
  }

  /** Where in the segment to begin: the nearest frame before the offset that is known and really there. */
  #knownPlace(path: string, fd: number): number {
    const place = logPlaces.find(path, this.#offset);
    if (place === undefined) return 0;
    const header = new Uint8Array(FRAME_HEADER_BYTES);
    if (readSync(fd, header, 0, FRAME_HEADER_BYTES, place.at) < FRAME_HEADER_BYTES) return 0;
    const frame = readFrameHeader(header);
    return this.#isPlausible(frame) && frame.offset === place.offset ? place.at : 0;
  }

  #read(): LogPiece | undefined {
    const segment = this.#segment;
    if (segment === undefined) return undefined;
    for (;;) {
      const chunk = readChunk(segment.fd, segment.at);
      this.#rememberPlace(segment, chunk);
      const wanted = this.#wantedPart(chunk);
      segment.at += wanted.consumed;
      if (wanted.piece !== undefined) return wanted.piece;
      if (wanted.consumed === 0) return undefined;
    }
  }

  #rememberPlace(segment: { path: string; start: number; at: number }, chunk: Uint8Array): void {
    const { path, start, at } = segment;
    if (chunk.length < FRAME_HEADER_BYTES) return;
    const frame = readFrameHeader(chunk);
    // Frames from before its start are in a segment that was recycled.
    if (this.#isPlausible(frame) && frame.offset >= start)
      logPlaces.remember(path, { offset: frame.offset, at });
  }

  /** Skips frames before the offset, cuts the one that contains it, and takes all that continue it without a gap. */
  #wantedPart(chunk: Uint8Array): { consumed: number; piece?: LogPiece } {
    let at = 0;
    let begin: number | undefined;
    while (at + FRAME_HEADER_BYTES <= chunk.length) {
      const frame = readFrameHeader(chunk, at);
      const next = at + FRAME_HEADER_BYTES + frame.length;
      if (!this.#isPlausible(frame) || next > chunk.length) break;
      if (begin !== undefined && frame.offset !== this.#offset) break; // what is given out has neither gap nor overlap
      if (frame.offset + frame.length > this.#offset) {
        if (!isAsWritten(frame, chunk.subarray(at + FRAME_HEADER_BYTES, next))) break;
        if (frame.offset > this.#offset) return { consumed: at, piece: this.#gapTo(frame.offset) };
        begin ??= cutFrame(chunk, { ...frame, at, since: this.#offset });
        this.#offset = frame.offset + frame.length;
      }
      at = next;
    }
    if (begin === undefined) return { consumed: at };
    return { consumed: at, piece: { type: "frames", bytes: chunk.subarray(begin, at) } };
  }

  #isPlausible(frame: { kind: number; length: number; offset: number }): boolean {
    const isOutput = frame.kind === frameKind.stdout || frame.kind === frameKind.stderr;
    const end = frame.offset + frame.length;
    return (
      isOutput && frame.length > 0 && frame.length <= MAX_FRAME_BYTES && end <= this.#log.range.nextOffset
    );
  }

  /** At a segment's end: on to the next one, or over what no segment has. */
  #leaveSegment(): LogPiece | undefined {
    const done = this.#segment?.start ?? 0;
    this.close();
    const next = this.#log.starts.find((start) => start > done);
    const to = next ?? this.#log.range.nextOffset;
    return to > this.#offset ? this.#gapTo(to) : undefined;
  }

  #gapTo(to: number): LogPiece {
    const from = this.#offset;
    this.#offset = to;
    return { type: "truncated", from, to };
  }
}

/** The offset after the last byte of a log that nobody writes any more. */
export function endOfLog(log: Pick<LogSource, "id" | "dir" | "starts" | "short">): number {
  const last = log.short === undefined ? log.starts.at(-1) : 0;
  if (last === undefined) return 0;
  const everything = { firstOffset: last, nextOffset: Number.MAX_SAFE_INTEGER };
  const reader = new LogReader({ ...log, starts: [last], range: everything }, last);
  try {
    for (let end = last; ; end = reader.offset) if (reader.next()?.type !== "frames") return end;
  } finally {
    reader.close();
  }
}

function openSegment(path: string): number | undefined {
  try {
    const fd = openSync(path, READ);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch {
    // Dropped by the ring, or deleted by the work: the caller reports the gap.
  }
  return undefined;
}

/** Enough to hold at least one whole frame, if there is one. */
function readChunk(fd: number, at: number): Uint8Array {
  const chunk = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, Math.max(0, fstatSync(fd).size - at)));
  const count = readSync(fd, chunk, 0, chunk.length, at);
  if (count < FRAME_HEADER_BYTES) return chunk.subarray(0, 0);
  const frameBytes = FRAME_HEADER_BYTES + readFrameHeader(chunk).length;
  if (frameBytes <= count || frameBytes > FRAME_HEADER_BYTES + MAX_FRAME_BYTES)
    return chunk.subarray(0, count);
  const larger = Buffer.allocUnsafeSlow(frameBytes);
  return larger.subarray(0, readSync(fd, larger, 0, larger.length, at));
}

function isAsWritten({ check }: { check: number }, payload: Uint8Array): boolean {
  return check === 0 || check === payloadCheck([payload]);
}

/** Where the part of a frame from `since` on begins; its header is written over the bytes that are not wanted. */
function cutFrame(
  chunk: Uint8Array,
  frame: { at: number; kind: number; length: number; offset: number; since: number },
): number {
  const skip = frame.since - frame.offset;
  if (skip <= 0) return frame.at;
  const kind = frame.kind === frameKind.stdout ? frameKind.stdout : frameKind.stderr;
  writeFrameHeader(chunk, { kind, length: frame.length - skip, offset: frame.since }, frame.at + skip);
  return frame.at + skip;
}
