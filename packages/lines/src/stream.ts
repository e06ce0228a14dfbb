import { type Body, bodyOf } from "./body.ts";
import { Garbled, headersOf, headOf, type ReplyHeaders } from "./reply.ts";
import { type Ears, Unanswered, type Wire } from "./wire.ts";

/** A reply whose body comes piece by piece, at the pace of whoever reads it. */
export interface StreamedReply {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: ReadableStream<Uint8Array> | null;
}

/** What has come and waits for its reader. Then the other side waits, too. */
const WAITING_BYTES = 512 * 1024;

/** One question whose reply streams, over a connection that ends with it. */
export class Stream implements Ears {
  readonly #signal: AbortSignal | undefined;
  readonly #abort = () => this.#fail(this.#signal?.reason);
  #patience: Timer | undefined;
  #wire: Wire | undefined;
  #answer: { resolve(reply: StreamedReply): void; reject(cause: unknown): void } | undefined;
  #head = Buffer.alloc(0);
  #body: { readonly form: Body; readonly to: ReadableStreamDefaultController<Uint8Array> } | undefined;
  #isPaused = false;
  #isOver = false;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Resolves with the reply's head, which is not waited for any longer than `patienceMs`. */
  ask(text: string, { wire, patienceMs }: { wire: Wire; patienceMs: number | undefined }) {
    this.#wire = wire;
    this.#signal?.addEventListener("abort", this.#abort);
    const giveUp = () => this.#fail(new Error(`no answer came within ${patienceMs} ms`));
    if (patienceMs !== undefined) this.#patience = setTimeout(giveUp, patienceMs);
    return new Promise<StreamedReply>((resolve, reject) => {
      this.#answer = { resolve, reject };
      if (!this.#isOver && wire.write(text)) return;
      reject(new Unanswered(new Error("it was closed"), { wasHeard: "no" }));
      this.#end();
    });
  }

  heard(bytes: Buffer): void {
    if (this.#isOver) return;
    try {
      const rest = this.#body === undefined ? this.#hearHead(bytes) : bytes;
      if (rest !== undefined) this.#hearBody(rest);
    } catch (error) {
      this.#fail(error);
    }
  }

  over(cause: Error): void {
    this.#fail(cause);
  }

  /** What follows the head, once that is all there. */
  #hearHead(bytes: Buffer): Buffer | undefined {
    this.#head = Buffer.concat([this.#head, bytes]);
    const head = headOf(this.#head);
    if (head === undefined) return undefined;
    clearTimeout(this.#patience);
    const form = bodyOf(head);
    const body = new ReadableStream<Uint8Array>(
      {
        start: (to) => {
          this.#body = { form, to };
        },
        pull: () => this.#pace("go on"),
        cancel: () => this.#end(),
      },
      { highWaterMark: WAITING_BYTES, size: (piece) => piece?.byteLength ?? 0 },
    );
    this.#answer?.resolve({ status: head.status, headers: headersOf(head), body });
    return this.#head.subarray(head.bytes);
  }

  #hearBody(bytes: Buffer): void {
    if (this.#body === undefined) return;
    const { form, to } = this.#body;
    if (form.take(bytes, (piece) => to.enqueue(piece))) {
      to.close();
      this.#end();
    } else if ((to.desiredSize ?? 0) <= 0) this.#pace("wait");
  }

  #pace(how: "go on" | "wait"): void {
    if (this.#isPaused === (how === "wait") || this.#isOver) return;
    this.#isPaused = how === "wait";
    if (this.#isPaused) this.#wire?.pause();
    else this.#wire?.resume();
  }

  #fail(cause: unknown): void {
    if (this.#isOver) return;
    const wasHeard = this.#body === undefined ? "unknown" : "yes";
    const isToldAsItIs = cause instanceof Garbled || cause instanceof Unanswered || this.#signal?.aborted;
    const failure = isToldAsItIs ? cause : new Unanswered(cause, { wasHeard });
    if (this.#body === undefined) this.#answer?.reject(failure);
    else this.#body.to.error(failure);
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#patience);
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#wire?.end();
  }
}
