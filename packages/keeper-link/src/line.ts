import { garbled } from "./failures.ts";
import { Heard, type Reply } from "./reply.ts";

/** A request whose body is at hand, so that it can be sent in one piece. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A connection that nobody needed for this long is closed. */
const KEPT_MS = 30_000;
/** At most so many are kept: a burst of calls leaves no more descriptors behind. */
const KEPT_LINES = 8;

/**
 * Questions to one keeper, each over a connection of its own, which is then kept for the next. In the thread that asks:
 * `fetch` has one of its own, and to wake it, and to be woken by it, is half of what a short call costs.
 */
export class Lines {
  readonly #socketPath: string;
  readonly #kept: Line[] = [];

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** The whole reply, whatever its status. Throws `Unanswered`, and `garbled` for what is no reply. */
  async ask(question: Question): Promise<Reply> {
    question.signal?.throwIfAborted();
    for (;;) {
      const kept = this.#kept.pop();
      const line = kept ?? (await Line.open(this.#socketPath));
      try {
        const reply = await line.ask(question);
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

  #keep(line: Line): void {
    this.#kept.push(line);
    line.rest(() => {
      const at = this.#kept.indexOf(line);
      if (at >= 0) this.#kept.splice(at, 1);
    });
  }
}

/** There is no whole reply. Whether the question was heard: not if it was never sent, certainly if its reply had begun. */
export class Unanswered extends Error {
  readonly wasHeard: "no" | "unknown" | "yes";

  constructor(cause: unknown, { wasHeard }: Pick<Unanswered, "wasHeard">) {
    super("the connection ended before the answer did", { cause });
    this.wasHeard = wasHeard;
  }
}

/** One connection, one question at a time. */
class Line {
  #socket: Bun.Socket | undefined;
  #heard = new Heard();
  #answer: PromiseWithResolvers<Reply> | undefined;
  #unsent: Uint8Array | undefined;
  #onEnd: (() => void) | undefined;
  #restTimer: Timer | undefined;

  get isOpen(): boolean {
    return this.#socket !== undefined;
  }

  static async open(socketPath: string): Promise<Line> {
    const line = new Line();
    const socket = {
      data: (_: Bun.Socket, bytes: Buffer) => line.#hear(bytes),
      drain: () => line.#sendRest(),
      close: () => line.#end(new Error("the connection was closed")),
      error: (_: Bun.Socket, error: Error) => line.#end(error),
    };
    try {
      line.#socket = await Bun.connect({ unix: socketPath, socket });
      return line;
    } catch (cause) {
      throw new Unanswered(cause, { wasHeard: "no" });
    }
  }

  async ask({ signal, ...question }: Question): Promise<Reply> {
    this.#onEnd = undefined;
    this.#heard = new Heard();
    const answer = Promise.withResolvers<Reply>();
    this.#answer = answer;
    const abort = () => this.#end(signal?.reason);
    signal?.addEventListener("abort", abort);
    try {
      this.#send(question);
      return await answer.promise;
    } finally {
      this.#answer = undefined;
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Until it is asked again; `onEnd` if it is over before. */
  rest(onEnd: () => void): void {
    this.#onEnd = onEnd;
    if (this.#restTimer !== undefined) this.#restTimer.refresh();
    else this.#restTimer = setTimeout(() => this.#onEnd && this.close(), KEPT_MS).unref();
  }

  close(): void {
    this.#end(new Error("it is not needed any more"));
  }

  #send(question: Omit<Question, "signal">): void {
    const text = textOf(question);
    const written = this.#socket?.write(text) ?? -1;
    if (written < 0) this.#end(new Error("the connection was closed"), { wasHeard: "no" });
    else if (written < Buffer.byteLength(text)) this.#unsent = Buffer.from(text).subarray(written);
  }

  #sendRest(): void {
    if (this.#unsent === undefined) return;
    const written = this.#socket?.write(this.#unsent) ?? 0;
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(Math.max(0, written)) : undefined;
  }

  #hear(bytes: Buffer): void {
    try {
      // Nobody asked: whoever speaks all the same is no keeper of ours.
      if (this.#answer === undefined) throw garbled("it spoke without being asked");
      const reply = this.#heard.add(bytes);
      if (reply === undefined) return;
      this.#answer.resolve(reply);
      if (!reply.isKept || this.#unsent !== undefined) this.#drop();
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
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#socket = undefined;
    this.#unsent = undefined;
    clearTimeout(this.#restTimer);
    this.#onEnd?.();
    socket.end();
  }
}

function textOf({ method, path, headers, body }: Omit<Question, "signal">): string {
  let head = `${method} /v1${path} HTTP/1.1\r\nHost: keeper\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  if (BREAKS.test(path) || Object.values(headers).some((value) => BREAKS.test(value)))
    throw new TypeError("a header or a path has a line break in it");
  if (body === undefined) return `${head}\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const BREAKS = /[\r\n\0]/;
