import { HoldfastError } from "./errors.ts";

/**
 * Many small files in one body, in either direction: for each a header, JSON behind its length in four bytes (big
 * endian), and then the file's bytes, as many as the header's `sizeBytes` says. This file stays free of zod: the SDK
 * ships it.
 */

/** One file to be changed. The conditions are looked at in the same step in which the file is put in its place. */
export type BatchEntry =
  | ({ op: "write"; path: string; sizeBytes: number; mode: string } & BatchCondition)
  | ({ op: "link"; path: string; target: string } & BatchCondition)
  | ({ op: "delete"; path: string } & BatchCondition);

/** An etag that it must still have, or `null`: that it must not be there. */
export interface BatchCondition {
  expected: string | null;
}

/** What came of one entry. `etag` is that of the new file; a deleted one has none. */
export type BatchResult =
  | { path: string; etag?: string | undefined }
  | { path: string; error: { code: string; message: string } };

/** One file of an answer; with its bytes behind it, if those were asked for. */
export type BatchFile =
  | { path: string; sizeBytes: number; etag: string; mode: string; sha256?: string | undefined }
  | { path: string; sizeBytes: number; error: { code: string; message: string } };

/** The largest file that is read in a batch: it is in memory for a moment. */
export const MAX_BATCHED_BYTES = 1024 * 1024;

export function batchHeader(header: object): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(4 + json.length);
  new DataView(bytes.buffer).setUint32(0, json.length);
  bytes.set(json, 4);
  return bytes;
}

// A path of 4 KiB in JSON, with room.
const MAX_HEADER_BYTES = 64 * 1024;

/** Reads a batch as its bytes come. After each header its content must be read, all of it, before the next. */
export class BatchReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next header as it came; `undefined` at the end. */
  async header(): Promise<unknown> {
    const length = await this.#exactly(4);
    if (length === undefined) return undefined;
    const size = new DataView(length.buffer, length.byteOffset, 4).getUint32(0);
    if (size > MAX_HEADER_BYTES)
      throw new HoldfastError("invalid_argument", "a header of the batch is too long");
    const json = await this.#exactly(size);
    if (json === undefined) throw cutOff();
    return parsed(new TextDecoder().decode(json));
  }

  async *content(sizeBytes: number): AsyncGenerator<Uint8Array> {
    for (let left = sizeBytes; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) throw cutOff();
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }

  async #exactly(size: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length < size)
      if (!(await this.#more())) {
        if (this.#rest.length > 0) throw cutOff();
        return undefined;
      }
    const taken = this.#rest.subarray(0, size);
    this.#rest = this.#rest.subarray(size);
    return taken;
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#source.next();
    if (done) return false;
    const joined = new Uint8Array(this.#rest.length + value.length);
    joined.set(this.#rest);
    joined.set(value, this.#rest.length);
    this.#rest = joined;
    return true;
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new HoldfastError("invalid_argument", "a header of the batch is not JSON", { cause });
  }
}

function cutOff(): HoldfastError {
  return new HoldfastError("invalid_argument", "the batch ends in the middle of a file");
}
