import { readFileSync } from "node:fs";
import { encodeFrame, FrameDecoder } from "@holdfast/protocol/log-frames";
import { headPath } from "./log-files.ts";
import { LogReader, type LogSource } from "./log-reader.ts";
import type { Stream } from "./log-writer.ts";

/** The first `maxBytes` of a stream, and how many there were in all. */
export class BoundedOutput {
  readonly #maxBytes: number;
  #buffer = new Uint8Array(0);
  #kept = 0;
  total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#kept);
  }

  get full(): boolean {
    return this.#kept >= this.#maxBytes;
  }

  add(bytes: Uint8Array): void {
    this.total += bytes.length;
    const part = bytes.subarray(0, this.#maxBytes - this.#kept);
    if (part.length === 0) return;
    this.#reserve(this.#kept + part.length);
    this.#buffer.set(part, this.#kept);
    this.#kept += part.length;
  }

  #reserve(size: number): void {
    if (size <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.min(this.#maxBytes, Math.max(size, this.#buffer.length * 2)));
    larger.set(this.#buffer.subarray(0, this.#kept));
    this.#buffer = larger;
  }
}

export type Output = Record<Stream, BoundedOutput>;

export function boundedOutput(maxBytes: number): Output {
  return { stdout: new BoundedOutput(maxBytes), stderr: new BoundedOutput(maxBytes) };
}

/** One stream as an answer carries it. A character that the bound cuts in two is left out whole. */
export function asText(
  output: BoundedOutput,
  options: { total: number; encoding: "utf8" | "base64" },
): { text: string; missing: number } {
  const cut = options.encoding === "utf8" && options.total > output.bytes.length;
  const bytes = cut ? output.bytes.subarray(0, wholeCharacters(output.bytes)) : output.bytes;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(options.encoding);
  return { text, missing: options.total - bytes.length };
}

/** Length without an incomplete UTF-8 sequence at the end; bytes that are no UTF-8 anyway stay. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? bytes.length - back : bytes.length;
    }
    if (byte < 0x80) break;
  }
  return bytes.length;
}

/** The output of a finished command once more, from disk. */
export function readOutput(log: LogSource, maxBytes: number): Output {
  const output = boundedOutput(maxBytes);
  const decoder = new FrameDecoder();
  const take = (frames: Uint8Array) => {
    for (const event of decoder.push(frames)) {
      if (event.type === "stdout" || event.type === "stderr") output[event.type].add(event.bytes);
    }
  };
  if (log.range.firstOffset > 0) take(readHead(log));
  else readAll(log, { take, until: () => output.stdout.full && output.stderr.full });
  return output;
}

/** Kept beside a log that has lost its beginning. */
export function headFrames(output: Output): Uint8Array {
  const frames = (["stdout", "stderr"] as const).flatMap((type) => piecesOf(output[type].bytes, type));
  return Buffer.concat(frames);
}

// Well under the largest frame that a reader takes.
const HEAD_FRAME_BYTES = 512 * 1024;

function piecesOf(bytes: Uint8Array, type: Stream): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let offset = 0; offset < bytes.length; offset += HEAD_FRAME_BYTES) {
    frames.push(encodeFrame({ type, offset, bytes: bytes.subarray(offset, offset + HEAD_FRAME_BYTES) }));
  }
  return frames;
}

function readHead(log: LogSource): Uint8Array {
  try {
    return readFileSync(headPath(log.dir, log.id));
  } catch {
    return new Uint8Array(0); // the disk was full then, or the work deleted it: counted as missing
  }
}

function readAll(log: LogSource, to: { take: (frames: Uint8Array) => void; until: () => boolean }): void {
  const reader = new LogReader(log, 0);
  try {
    for (let piece = reader.next(); piece !== undefined && !to.until(); piece = reader.next()) {
      if (piece.type === "frames") to.take(piece.bytes);
    }
  } finally {
    reader.close();
  }
}
