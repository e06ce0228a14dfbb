/** A reply that is not a stream has no business being larger: who says more may be hostile. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
/** Ours have a few hundred bytes. */
const MAX_HEAD_BYTES = 64 * 1024;

export interface Reply {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly text: string;
  /** The connection may be used for another question. */
  readonly isKept: boolean;
}

export interface ReplyHeaders extends Iterable<[name: string, value: string]> {
  get(name: string): string | null;
}

/** What came is no reply that we would understand. */
export class Garbled extends Error {}

/** A reply of HTTP/1.1 that says how long it is, as all of ours do but the streams; piece by piece. */
export class Heard {
  #pieces: Buffer[] = [];
  #bytes = 0;
  #head: Head | undefined;
  #wholeBytes = 0;

  /** Whether all of its head has come. */
  get begun(): boolean {
    return this.#head !== undefined;
  }

  /** The reply, with its last piece. Throws if it is none. */
  add(bytes: Buffer): Reply | undefined {
    this.#bytes += bytes.length;
    const whole = this.#pieces.length === 0 ? bytes : undefined;
    this.#head ??= this.#begin(whole ?? Buffer.concat([...this.#pieces, bytes]));
    if (this.#head === undefined || this.#bytes < this.#wholeBytes) {
      this.#pieces.push(bytes);
      return undefined;
    }
    if (this.#bytes > this.#wholeBytes) throw new Garbled("it says more than it announced");
    return replyOf(this.#head, whole ?? Buffer.concat([...this.#pieces, bytes]));
  }

  #begin(bytes: Buffer): Head | undefined {
    const head = headOf(bytes);
    if (head === undefined) return undefined;
    const length = lengthOf(head);
    // Also one that says it in any other way: NaN is not at most anything.
    if (!(length <= MAX_REPLY_BYTES)) throw new Garbled("a reply of unknown length");
    this.#wholeBytes = head.bytes + length;
    return head;
  }
}

/** The beginning of a reply, up to and with the empty line. */
export interface Head {
  readonly text: string;
  readonly status: number;
  readonly bytes: number;
}

/** `undefined` as long as it is not all there. */
export function headOf(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0 && bytes.length <= MAX_HEAD_BYTES) return undefined;
  if (end < 0 || end > MAX_HEAD_BYTES) throw new Garbled("a head without an end");
  const text = bytes.toString("latin1", 0, end + 2);
  const status = /^HTTP\/1\.1 ([2-5]\d\d) /.exec(text)?.[1];
  if (status === undefined) throw new Garbled("a head without a status");
  return { text, status: Number(status), bytes: end + 4 };
}

/** Of the body; NaN if the head does not say it. */
export function lengthOf({ status, text }: Head): number {
  return status === 204 ? 0 : Number(LENGTH.exec(text)?.[1] ?? Number.NaN);
}

export function headersOf({ text }: Head): ReplyHeaders {
  return {
    get: (name) => new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)\\r\\n`, "i").exec(text)?.[1] ?? null,
    *[Symbol.iterator]() {
      for (const [, name = "", value = ""] of text.matchAll(FIELD)) yield [name, value];
    },
  };
}

function replyOf(head: Head, bytes: Buffer): Reply {
  const text = bytes.toString("utf8", head.bytes);
  return { status: head.status, text, headers: headersOf(head), isKept: !CLOSES.test(head.text) };
}

const FIELD = /^([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*\r$/gm;
const LENGTH = /\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n/i;
const CLOSES = /\r\nconnection:[ \t]*close[ \t]*\r\n/i;
