import { Garbled, type Head, headersOf, lengthOf } from "./reply.ts";

/** The bytes of a body, out of the bytes of a connection. */
export interface Body {
  /** Gives what is in these of it. True with its last byte. Throws if it is none. */
  take(bytes: Buffer, give: (piece: Buffer) => void): boolean;
}

/** As its head says it: by its length, or in chunks. */
export function bodyOf(head: Head): Body {
  const length = lengthOf(head);
  if (!Number.isNaN(length)) return new LongBody(length);
  if (headersOf(head).get("transfer-encoding")?.trim().toLowerCase() === "chunked") return new ChunkedBody();
  throw new Garbled("a reply of unknown length");
}

class LongBody implements Body {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  take(bytes: Buffer, give: (piece: Buffer) => void): boolean {
    if (bytes.length > this.#left) throw new Garbled("it says more than it announced");
    this.#left -= bytes.length;
    if (bytes.length > 0) give(bytes);
    return this.#left === 0;
  }
}

/** A line that says how long a chunk is, a chunk, the end of its line, and so on. Behind an empty chunk, only lines. */
class ChunkedBody implements Body {
  #line = "";
  /** Of a chunk. */
  #left = 0;
  #expected: "size" | "end of chunk" | "last line" = "size";

  take(bytes: Buffer, give: (piece: Buffer) => void): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const piece = bytes.subarray(at, at + this.#left);
        at += piece.length;
        this.#left -= piece.length;
        give(piece);
        continue;
      }
      const end = bytes.indexOf(LINE_FEED, at);
      this.#line += bytes.toString("latin1", at, end < 0 ? bytes.length : end);
      if (this.#line.length > MAX_LINE) throw new Garbled("a line without an end between two chunks");
      if (end < 0) return false;
      at = end + 1;
      if (this.#isEnd(this.#line)) return true;
      this.#line = "";
    }
    return false;
  }

  #isEnd(line: string): boolean {
    if (this.#expected === "last line") return line === "\r";
    if (this.#expected === "end of chunk") {
      if (line !== "\r") throw new Garbled("a chunk of another length");
      this.#expected = "size";
      return false;
    }
    const size = SIZE.exec(line)?.[1];
    if (size === undefined) throw new Garbled("a chunk without a size");
    this.#left = Number.parseInt(size, 16);
    this.#expected = this.#left === 0 ? "last line" : "end of chunk";
    return false;
  }
}

const LINE_FEED = 10;
const MAX_LINE = 4096;
/** Whatever is said of a chunk beside its size is not for us. */
const SIZE = /^([0-9a-f]{1,8})[ \t]*(?:;[^\r]*)?\r$/i;
