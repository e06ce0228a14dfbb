import { Garbled, Heard, type Reply } from "./reply.ts";
import { Stream, type StreamedReply } from "./stream.ts";
import {
  type Ears,
  type LinesOptions,
  openWire,
  type Question,
  textOf,
  Unanswered,
  type Wire,
} from "./wire.ts";

/** At most so many are kept: a burst of calls leaves no more descriptors behind. */
const KEPT_LINES = 8;

/**
 * Questions to one server, each over a connection of its own, which is then kept for the next. In the thread that asks:
 * the `fetch` of Bun has one of its own, and to wake it, and to be woken by it, is half of what a short call costs; that
 * of Node takes ten times as long as the connection itself.
 */
export class Lines {
  readonly #options: LinesOptions;
  readonly #kept: Line[] = [];

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  /** The whole reply, whatever its status. Throws `Unanswered`, and `Garbled` for what is no reply. */
  async ask(question: Question): Promise<Reply> {
    question.signal?.throwIfAborted();
    const text = textOf(question, this.#options.host);
    for (;;) {
      const kept = this.#kept.pop();
      const line = kept ?? (await Line.open(this.#options, question.signal));
      try {
        const reply = await line.ask(text, question.signal);
        if (line.isOpen && this.#kept.length < KEPT_LINES) this.#keep(line);
        else line.close();
        return reply;
      } catch (error) {
        // One that rested may have ended in this very moment: then nothing was sent, and there are others.
        const wasDead = kept !== undefined && error instanceof Unanswered && error.wasHeard === "no";
        if (!wasDead) throw error;
      }
    }
  }

  /** The reply as it comes, over a connection of its own. The same errors, of which the body's may be one. */
  async stream(question: Question): Promise<StreamedReply> {
    const { signal } = question;
    signal?.throwIfAborted();
    const text = textOf(question, this.#options.host);
    const stream = new Stream(signal);
    const wire = await openWire(this.#options, stream, signal);
    return stream.ask(text, { wire, patienceMs: this.#options.patienceMs });
  }

  #keep(line: Line): void {
    this.#kept.push(line);
    line.rest(() => {
      const at = this.#kept.indexOf(line);
      if (at >= 0) this.#kept.splice(at, 1);
    });
  }
}

/** Who waits for an answer. Node has `Promise.withResolvers` only from 22 on. */
interface Waiting {
  resolve(reply: Reply): void;
  reject(cause: unknown): void;
}

/** One connection, one question at a time. */
class Line {
  readonly #options: LinesOptions;
  #wire: Wire | undefined;
  #heard = new Heard();
  #answer: Waiting | undefined;
  #onEnd: (() => void) | undefined;
  #restTimer: Timer | undefined;

  private constructor(options: LinesOptions) {
    this.#options = options;
  }

  static async open(options: LinesOptions, signal: AbortSignal | undefined): Promise<Line> {
    const line = new Line(options);
    const ears: Ears = { heard: (bytes) => line.#hear(bytes), over: (cause) => line.#end(cause) };
    line.#wire = await openWire(options, ears, signal);
    return line;
  }

  get isOpen(): boolean {
    return this.#wire !== undefined;
  }

  async ask(text: string, signal: AbortSignal | undefined): Promise<Reply> {
    const { patienceMs } = this.#options;
    this.#onEnd = undefined;
    this.#heard = new Heard();
    const answered = new Promise<Reply>((resolve, reject) => {
      this.#answer = { resolve, reject };
    });
    const abort = () => this.#end(signal?.reason);
    signal?.addEventListener("abort", abort);
    const giveUp = () => this.#end(new Error(`no answer came within ${patienceMs} ms`));
    const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
    try {
      this.#wire?.holdProgram("while asked");
      if (this.#wire?.write(text) !== true) this.#end(new Error("it was closed"), { wasHeard: "no" });
      return await answered;
    } finally {
      clearTimeout(timer);
      this.#answer = undefined;
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Until it is asked again; `onEnd` if it is over before. */
  rest(onEnd: () => void): void {
    this.#wire?.holdProgram("no");
    this.#onEnd = onEnd;
    if (this.#restTimer !== undefined) this.#restTimer.refresh();
    else this.#restTimer = setTimeout(() => this.#onEnd && this.close(), this.#options.keptMs).unref();
  }

  close(): void {
    this.#end(new Error("it is not needed any more"));
  }

  #hear(bytes: Buffer): void {
    try {
      // Nobody asked: whoever speaks all the same does not speak our language.
      if (this.#answer === undefined) throw new Garbled("it spoke without being asked");
      const reply = this.#heard.add(bytes);
      if (reply === undefined) return;
      this.#answer.resolve(reply);
      if (!reply.isKept || this.#wire?.isSending !== false) this.#drop();
    } catch (error) {
      this.#answer?.reject(error);
      this.#drop();
    }
  }

  #end(
    cause: unknown,
    { wasHeard = this.#heard.begun ? "yes" : "unknown" } = {} as Partial<Unanswered>,
  ): void {
    this.#answer?.reject(new Unanswered(cause, { wasHeard }));
    this.#drop();
  }

  #drop(): void {
    const wire = this.#wire;
    if (wire === undefined) return;
    this.#wire = undefined;
    clearTimeout(this.#restTimer);
    this.#onEnd?.();
    wire.end();
  }
}
