import type { Ending } from "./execution.ts";

/**
 * A log is one ordered sequence of bytes; an offset is a position in it, over stdout and stderr together, so that their
 * interleaving is kept. The same frame is used on disk, between keeper and server, and to a client that asks for
 * `LOG_FRAMES_TYPE`: a 16 byte header, then the payload.
 *
 *   byte 0      kind
 *   bytes 1-3   on disk, a check of the payload; 0 if there is none
 *   bytes 4-7   length of the payload, big endian
 *   bytes 8-15  offset of the payload's first byte in the log, big endian
 */
export const LOG_FRAMES_TYPE = "application/vnd.holdfast.log-frames";
export const FRAME_HEADER_BYTES = 16;
/** A frame that claims more is garbage or an attack: the keeper never writes one. */
export const MAX_FRAME_BYTES = 1024 * 1024;

export const frameKind = { stdout: 1, stderr: 2, truncated: 3, exit: 4, keepAlive: 5, lost: 6 } as const;
type FrameKind = (typeof frameKind)[keyof typeof frameKind];

export type LogEvent =
  | { type: "stdout" | "stderr"; offset: number; bytes: Uint8Array }
  /** Bytes from `from` up to, not including, `to` are no longer in the log. */
  | { type: "truncated"; from: number; to: number }
  | ({ type: "exit"; offset: number } & Ending)
  /** Its instance ended under it: how the program itself ended was not seen. */
  | { type: "lost"; offset: number; reason: string };

export function writeFrameHeader(
  into: Uint8Array,
  header: { kind: FrameKind; length: number; offset: number; check?: number },
  at = 0,
): void {
  const view = new DataView(into.buffer, into.byteOffset + at, FRAME_HEADER_BYTES);
  view.setUint32(0, header.kind * 2 ** 24 + (header.check ?? 0));
  view.setUint32(4, header.length);
  view.setBigUint64(8, BigInt(header.offset));
}

export function readFrameHeader(from: Uint8Array, at = 0): FrameHeader {
  const view = new DataView(from.buffer, from.byteOffset + at, FRAME_HEADER_BYTES);
  return {
    kind: view.getUint8(0),
    check: view.getUint32(0) & 0xffffff,
    length: view.getUint32(4),
    offset: Number(view.getBigUint64(8)),
  };
}

/** One event as a frame. */
export function encodeFrame(event: LogEvent): Uint8Array {
  const payload = payloadOf(event);
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  const offset = event.type === "truncated" ? event.from : event.offset;
  writeFrameHeader(frame, { kind: frameKind[event.type], length: payload.length, offset });
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

function payloadOf(event: LogEvent): Uint8Array {
  if (event.type === "stdout" || event.type === "stderr") return event.bytes;
  const { type: _, ...facts } = event;
  return new TextEncoder().encode(JSON.stringify(facts));
}

interface FrameHeader {
  readonly kind: number;
  readonly check: number;
  readonly length: number;
  readonly offset: number;
}

/**
 * Turns chunks cut anywhere into events; keep-alives are swallowed. Output is passed on as it comes, without a copy, so
 * one frame may become several events. Throws on what cannot be a log.
 */
export class FrameDecoder {
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #frame: FrameHeader | undefined;
  /** How much of the present frame's payload has come. */
  #taken = 0;
  /** The payload of a frame that means something only as a whole. */
  #facts: Uint8Array = new Uint8Array(0);

  *push(chunk: Uint8Array): Generator<LogEvent> {
    for (let at = 0; at < chunk.length; ) {
      at += this.#frame === undefined ? this.#takeHeader(chunk.subarray(at)) : 0;
      if (this.#frame === undefined) return;
      const part = chunk.subarray(at, at + this.#frame.length - this.#taken);
      at += part.length;
      const event = this.#takePayload(this.#frame, part);
      if (event !== undefined) yield event;
    }
  }

  /** Returns how many bytes of it were the header's. */
  #takeHeader(from: Uint8Array): number {
    const part = from.subarray(0, FRAME_HEADER_BYTES - this.#headerBytes);
    this.#header.set(part, this.#headerBytes);
    this.#headerBytes += part.length;
    if (this.#headerBytes < FRAME_HEADER_BYTES) return part.length;
    this.#headerBytes = 0;
    this.#taken = 0;
    this.#frame = readFrameHeader(this.#header);
    if (this.#frame.length > MAX_FRAME_BYTES)
      throw new Error(`a log frame of ${this.#frame.length} bytes is too large`);
    if (!isOutput(this.#frame)) this.#facts = new Uint8Array(this.#frame.length);
    return part.length;
  }

  #takePayload(frame: FrameHeader, part: Uint8Array): LogEvent | undefined {
    const offset = frame.offset + this.#taken;
    if (!isOutput(frame)) this.#facts.set(part, this.#taken);
    this.#taken += part.length;
    const isWhole = this.#taken === frame.length;
    if (isWhole) this.#frame = undefined;
    if (!isOutput(frame)) return isWhole ? decodeFacts(frame.kind, this.#facts) : undefined;
    return { type: frame.kind === frameKind.stdout ? "stdout" : "stderr", offset, bytes: part };
  }
}

function isOutput({ kind }: FrameHeader): boolean {
  return kind === frameKind.stdout || kind === frameKind.stderr;
}

function decodeFacts(kind: number, payload: Uint8Array): LogEvent | undefined {
  switch (kind) {
    case frameKind.truncated:
      return { type: "truncated", ...facts(payload, isTruncated) };
    case frameKind.exit:
      return { type: "exit", ...facts(payload, isExit) };
    case frameKind.lost:
      return { type: "lost", ...facts(payload, isLost) };
    case frameKind.keepAlive:
      return undefined;
    default:
      throw new Error(`unknown log frame kind ${kind}`);
  }
}

// Checked by hand: this file is a part of the SDK, which zod would make five times as large.
function facts<T>(payload: Uint8Array, check: (fields: Fields) => fields is T & Fields): T {
  const value: unknown = JSON.parse(new TextDecoder().decode(payload));
  const fields = typeof value === "object" && value !== null ? (value as Fields) : {};
  if (!check(fields)) throw new Error("a log frame with wrong facts in it");
  return fields;
}

type Fields = Record<string, unknown>;

function isTruncated(fields: Fields): fields is Fields & { from: number; to: number } {
  return Number.isSafeInteger(fields.from) && Number.isSafeInteger(fields.to);
}

function isExit(fields: Fields): fields is Fields & Ending & { offset: number } {
  const { offset, exitCode, signal, timedOut, cancelled, oomKilled } = fields;
  const numbers = [offset, exitCode].every(Number.isSafeInteger);
  const facts = [timedOut, cancelled, oomKilled].every((fact) => typeof fact === "boolean");
  return numbers && facts && (signal === null || typeof signal === "string");
}

function isLost(fields: Fields): fields is Fields & { offset: number; reason: string } {
  return Number.isSafeInteger(fields.offset) && typeof fields.reason === "string";
}
