import { TarError } from "./entry.ts";

/** Bytes of a stream, so many at a time. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#pieces = stream[Symbol.asyncIterator]();
  }

  /** Exactly so many; `undefined` if the stream has ended before the first. Throws if it ends in between. */
  async take(length: number): Promise<Uint8Array | undefined> {
    if (this.#piece.length >= length) return this.#cut(length);
    const out = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const piece = await this.some(length - at);
      if (piece === undefined) {
        if (at === 0) return undefined;
        throw cutShort();
      }
      out.set(piece, at);
      at += piece.length;
    }
    return out;
  }

  async takeAll(length: number): Promise<Uint8Array> {
    const bytes = await this.take(length);
    if (bytes === undefined) throw cutShort();
    return bytes;
  }

  /** What there is, at least a byte and at most so many; `undefined` at the end. */
  async some(length: number): Promise<Uint8Array | undefined> {
    while (this.#piece.length === 0) {
      const { done, value } = await this.#pieces.next();
      if (done) return undefined;
      this.#piece = value;
    }
    return this.#cut(Math.min(length, this.#piece.length));
  }

  /** Wants no more. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  #cut(length: number): Uint8Array {
    const cut = this.#piece.subarray(0, length);
    this.#piece = this.#piece.subarray(length);
    return cut;
  }
}

export function cutShort(): TarError {
  return new TarError("the archive ends in the middle: it was cut short");
}
