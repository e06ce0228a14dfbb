/** A reply that is not a stream has no business being larger: who says more may be hostile. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
/** Ours have a few hundred bytes. */
const MAX_HEAD_BYTES = 64 * 1024;

export interface Reply {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
  /** The connection may be used for another question. */
  readonly isKept: boolean;
}

/** What came is no reply that we would understand. */
export class Garbled extends Error {}

interface Head {
  readonly text: string;
  readonly status: number;
  /** Of head and body together. */
  readonly bytes: number;
  readonly headBytes: number;
}

/** A reply of HTTP/1.1 that says how long it is, as all of ours do but the streams; piece by piece. */
export class Heard {
  #pieces: Buffer[] = [];
  #bytes = 0;
  #head: Head | undefined;

  /** Whether all of its head has come. */
  get begun(): boolean {
    return this.#head !== undefined;
  }

  /** The reply, with its last piece. Throws if it is none. */
  add(bytes: Buffer): Reply | undefined {
    // The runtime uses the buffer again: what has to wait for the rest is kept as a copy.
    this.#bytes += bytes.length;
    const whole = this.#pieces.length === 0 ? bytes : undefined;
    this.#head ??= headOf(whole ?? Buffer.concat([...this.#pieces, bytes]));
    if (this.#head === undefined || this.#bytes < this.#head.bytes) {
      this.#pieces.push(Buffer.from(bytes));
      return undefined;
    }
    if (this.#bytes > this.#head.bytes) throw new Garbled("it says more than it announced");
    return replyOf(this.#head, whole ?? Buffer.concat([...this.#pieces, bytes]));
  }
}

/** `undefined` as long as it is not all there. */
function headOf(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0 && bytes.length <= MAX_HEAD_BYTES) return undefined;
  if (end < 0 || end > MAX_HEAD_BYTES) throw new Garbled("a head without an end");
  const text = bytes.toString("latin1", 0, end + 2);
  const status = Number(/^HTTP\/1\.1 ([2-5]\d\d) /.exec(text)?.[1] ?? Number.NaN);
  const bodyBytes = status === 204 ? 0 : Number(LENGTH.exec(text)?.[1] ?? Number.NaN);
  // Also one that says it in any other way: NaN is not at most anything.
  if (!(bodyBytes <= MAX_REPLY_BYTES) || Number.isNaN(status)) throw new Garbled("a reply of unknown length");
  return { text, status, headBytes: end + 4, bytes: end + 4 + bodyBytes };
}

function replyOf({ text, status, headBytes }: Head, bytes: Buffer): Reply {
  return {
    status,
    text: bytes.toString("utf8", headBytes),
    headers: { get: (name) => fieldOf(text, name) ?? null },
    isKept: !CLOSES.test(text),
  };
}

const LENGTH = /\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n/i;
const CLOSES = /\r\nconnection:[ \t]*close[ \t]*\r\n/i;

/** A header's value. */
function fieldOf(head: string, name: string): string | undefined {
  const found = new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)\\r\\n`, "i").exec(head);
  return found?.[1];
}
