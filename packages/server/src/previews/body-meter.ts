import type { Framing } from "./framing.ts";
import { MalformedMessage } from "./http-head.ts";

/** Finds a body's end in the bytes that pass by, and changes none of them. */
export interface BodyMeter {
  readonly isDone: boolean;
  /** How many of these bytes belong to the body. Fewer than all: it is done, and the rest is the next message's. */
  take(bytes: Uint8Array): number;
}

export function meterOf(framing: Framing): BodyMeter {
  switch (framing.kind) {
    case "none":
      return new LengthMeter(0);
    case "length":
      return new LengthMeter(framing.bytes);
    case "close":
      return { isDone: false, take: (bytes) => bytes.length };
    case "chunked":
      return new ChunkMeter();
    default:
      return framing satisfies never;
  }
}

class LengthMeter implements BodyMeter {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  take(bytes: Uint8Array): number {
    const used = Math.min(bytes.length, this.#left);
    this.#left -= used;
    return used;
  }
}

/** A size and its extensions are short, trailers few. */
const LONGEST_LINE = 4096;
const MOST_TRAILERS = 64;
const [CR, LF] = [13, 10];

/**
 * Sizes in hexadecimal, each on a line of its own; then so many bytes, and an empty line; after the size 0 trailers up
 * to an empty line. Lines end in CR LF and nothing else, because programs differ in what else they take.
 */
class ChunkMeter implements BodyMeter {
  #state: "size" | "data" | "after data" | "trailers" | "done" = "size";
  #line = "";
  #left = 0;
  #trailers = 0;

  get isDone(): boolean {
    return this.#state === "done";
  }

  take(bytes: Uint8Array): number {
    let at = 0;
    while (at < bytes.length && this.#state !== "done") {
      if (this.#state !== "data") this.#character(bytes[at++] ?? 0);
      else at += this.#skip(bytes.length - at);
    }
    return at;
  }

  #skip(available: number): number {
    const used = Math.min(available, this.#left);
    this.#left -= used;
    if (this.#left === 0) this.#state = "after data";
    return used;
  }

  #character(byte: number): void {
    const afterReturn = this.#line.endsWith("\r");
    if (afterReturn !== (byte === LF)) throw new MalformedMessage("a line of a chunked body");
    if (afterReturn) {
      this.#lineEnded(this.#line.slice(0, -1));
      this.#line = "";
      return;
    }
    if (byte !== CR && byte !== 9 && (byte < 32 || byte === 127))
      throw new MalformedMessage("a line of a chunked body");
    this.#line += String.fromCharCode(byte);
    if (this.#line.length > LONGEST_LINE) throw new MalformedMessage("a line of a chunked body is too long");
  }

  #lineEnded(line: string): void {
    if (this.#state === "size") {
      const [, digits] = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;.*)?$/.exec(line) ?? [];
      if (digits === undefined) throw new MalformedMessage("a chunk's size");
      this.#left = Number.parseInt(digits, 16);
      this.#state = this.#left === 0 ? "trailers" : "data";
    } else if (this.#state === "after data") {
      if (line !== "") throw new MalformedMessage("a chunk is longer than its size");
      this.#state = "size";
    } else if (line === "") this.#state = "done";
    else if (++this.#trailers > MOST_TRAILERS) throw new MalformedMessage("too many trailers");
  }
}
