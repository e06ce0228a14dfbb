/** Bytes both ways, read and written in turn: nobody has to listen, and whoever is slow is waited for. */
export interface ByteStream {
  /** The next bytes; `undefined` at the end. Rejects if it broke. One reader at a time. */
  read(): Promise<Uint8Array | undefined>;
  /** So many bytes can be read without waiting. */
  readonly waiting: number;
  /** Gives back what was read too far. */
  unread(bytes: Uint8Array): void;
  /** Resolves when there is room for more. Rejects if it broke. */
  write(bytes: Uint8Array): Promise<void>;
  /** No more from us; the other side may still send. May be called twice. */
  end(): void;
  /** At once, and both ways. May be called twice. */
  destroy(): void;
  /** Resolves when it is over both ways, however that came. */
  readonly closed: Promise<void>;
}

/** The half of a stream that is read: what has come and was not asked for yet. */
export class Inbox {
  readonly #onRead: () => void;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;
  #end: "open" | "ended" | Error = "open";
  #waiting: PromiseWithResolvers<void> | undefined;

  /** `onRead`: something was taken out. */
  constructor(onRead: () => void) {
    this.#onRead = onRead;
  }

  /** Bytes that wait here. */
  get size(): number {
    return this.#size;
  }

  /** Nothing waits here, and more may come. */
  get isQuiet(): boolean {
    return this.#size === 0 && this.#end === "open";
  }

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.push(bytes);
    this.#size += bytes.length;
    this.#wake();
  }

  unread(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.unshift(bytes);
    this.#size += bytes.length;
  }

  /** What is here can still be read. The first end counts. */
  end(how: "ended" | Error): void {
    if (this.#end === "open") this.#end = how;
    this.#wake();
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const bytes = this.#chunks.shift();
      if (bytes !== undefined) {
        this.#size -= bytes.length;
        this.#onRead();
        return bytes;
      }
      if (this.#end === "ended") return undefined;
      if (this.#end !== "open") throw this.#end;
      this.#waiting ??= Promise.withResolvers();
      await this.#waiting.promise;
    }
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
