/** A request whose body is at hand, so that it can be sent in one piece. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A connection that is open, as the runtime has it. */
export interface Wire {
  /** Takes all of it, and sends what it can at once. False if it is closed already: then nothing was sent. */
  write(text: string): boolean;
  /** Not all that it took has been sent yet. */
  readonly isSending: boolean;
  /** Whether this connection alone keeps the program from ending. */
  holdProgram(hold: "while asked" | "no"): void;
  /** Nothing more is heard until `resume`. */
  pause(): void;
  resume(): void;
  end(): void;
}

/** Who listens to a connection. Nothing is heard after `over`. */
export interface Ears {
  heard(bytes: Buffer): void;
  over(cause: Error): void;
}

export interface LinesOptions {
  open(ears: Ears): Promise<Wire>;
  /** What the questions name as their host. */
  readonly host: string;
  /** A connection that nobody needed for this long is closed. Less than the other side waits, or both might act at once. */
  readonly keptMs: number;
  /** An answer is not waited for any longer. Without it, for as long as the connection lasts. */
  readonly patienceMs?: number;
}

/** There is no whole reply. Whether the question was heard: not if it was never sent, certainly if its reply had begun. */
export class Unanswered extends Error {
  readonly wasHeard: "no" | "unknown" | "yes";

  constructor(cause: unknown, { wasHeard }: Pick<Unanswered, "wasHeard">) {
    super("the connection ended before the answer did", { cause });
    this.wasHeard = wasHeard;
  }
}

/** Who is not wanted any more before it is open rejects with the signal's reason, and closes when it is. */
export async function openWire(
  options: LinesOptions,
  ears: Ears,
  signal: AbortSignal | undefined,
): Promise<Wire> {
  const opening = options.open(ears);
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason);
  });
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([opening, aborted]);
  } catch (cause) {
    if (!signal?.aborted) throw new Unanswered(cause, { wasHeard: "no" });
    opening.then(
      (wire) => wire.end(),
      () => {},
    );
    throw cause;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

/** As HTTP/1.1 has it. */
export function textOf({ method, path, headers, body }: Question, host: string): string {
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  if (BREAKS.test(path) || Object.values(headers).some((value) => BREAKS.test(value)))
    throw new TypeError("a header or a path has a line break in it");
  if (body === undefined) return `${head}\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const BREAKS = /[\r\n\0]/;
