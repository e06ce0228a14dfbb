// Most terminals say little: a ring begins with this and doubles as it fills.
const FIRST_BYTES = 16 * 1024;

/** The last bytes of an endless stream, addressed by their offset in it. */
export class Ring {
  readonly #capacity: number;
  #buffer: Uint8Array;
  #end = 0;
  #start = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#buffer = new Uint8Array(Math.min(FIRST_BYTES, capacity));
  }

  /** Offset of the oldest byte that is still there. */
  get start(): number {
    return this.#start;
  }

  /** Offset of the byte that will come next. */
  get end(): number {
    return this.#end;
  }

  /** Hands what it is about to drop to `dropping`, in order, before it takes the new bytes in. */
  append(bytes: Uint8Array, dropping: (lost: Uint8Array) => void): void {
    this.#growFor(bytes.length);
    const size = this.#buffer.length;
    const keepFrom = Math.max(this.#end + bytes.length - size, this.#start);
    for (const lost of this.#pieces(this.#start, Math.min(keepFrom, this.#end))) dropping(lost);
    const skipped = Math.max(0, bytes.length - size);
    if (skipped > 0) dropping(bytes.subarray(0, skipped));
    this.#put(bytes.subarray(skipped), this.#end + skipped);
    this.#end += bytes.length;
    this.#start = keepFrom;
  }

  /** A copy of at most `limit` bytes from `offset` on, which must be between `start` and `end`. */
  read(offset: number, limit: number): Uint8Array {
    const to = Math.min(this.#end, offset + limit);
    const copy = new Uint8Array(to - offset);
    let at = 0;
    for (const piece of this.#pieces(offset, to)) {
      copy.set(piece, at);
      at += piece.length;
    }
    return copy;
  }

  #put(bytes: Uint8Array, offset: number): void {
    const at = offset % this.#buffer.length;
    const untilWrap = Math.min(bytes.length, this.#buffer.length - at);
    this.#buffer.set(bytes.subarray(0, untilWrap), at);
    this.#buffer.set(bytes.subarray(untilWrap), 0);
  }

  /** The part from `from` to `to` where it lies: one piece, or two where it wraps. */
  *#pieces(from: number, to: number): Generator<Uint8Array> {
    const size = this.#buffer.length;
    while (from < to) {
      const at = from % size;
      const length = Math.min(to - from, size - at);
      yield this.#buffer.subarray(at, at + length);
      from += length;
    }
  }

  #growFor(more: number): void {
    const wanted = Math.min(this.#end - this.#start + more, this.#capacity);
    if (wanted <= this.#buffer.length) return;
    const held = this.read(this.#start, this.#end - this.#start);
    const doubled = 2 ** Math.ceil(Math.log2(wanted));
    this.#buffer = new Uint8Array(Math.min(doubled, this.#capacity));
    this.#put(held, this.#start);
  }
}
