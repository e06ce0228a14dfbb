import { HoldfastError } from "@holdfast/protocol";
import { garbled, lost } from "./failures.ts";

/** A held connection whose only message is its end. */
export interface Watch {
  close(): void;
}

export interface WatchOptions {
  readonly socketPath: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How long the keeper may take to answer that the watch is held. */
  readonly timeoutMs: number;
  onEnd(): void;
}

/**
 * Tells when a keeper ends, without asking again and again: a connection that is held is closed by the kernel the
 * moment its process is gone. And it tells the keeper that it has a server: it answers without an end, and sees ours.
 * An older keeper has no such route; its connection is held all the same.
 *
 * Not by `fetch`: what counts is the end of the connection, not that of the answer.
 */
export async function watchKeeper({ socketPath, headers, timeoutMs, onEnd }: WatchOptions): Promise<Watch> {
  const greeting = new Greeting();
  let open = true;
  const ended = () => {
    greeting.fail(lost(new Error("the connection was closed"), "no"));
    if (open && greeting.isHeld) onEnd();
    open = false;
  };
  const socket = await Bun.connect({
    unix: socketPath,
    socket: { data: (_, bytes) => greeting.hear(bytes), close: ended, error: ended },
  }).catch((cause: unknown) => {
    throw lost(cause, "no");
  });
  const close = () => {
    open = false;
    socket.end();
  };
  const timer = setTimeout(() => greeting.fail(lost(new Error("no answer in time"), "no")), timeoutMs);
  const lines = Object.entries({ Host: "keeper", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`GET /v1/watch HTTP/1.1\r\n${lines.join("")}\r\n`);
  try {
    await greeting.held;
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return { close };
}

// A keeper's refusal is a few hundred bytes; the workload can make it say anything.
const MAX_GREETING_BYTES = 64 * 1024;

/** The beginning of the keeper's answer, as far as it decides whether the watch is held. */
class Greeting {
  readonly #held = Promise.withResolvers<void>();
  #text = "";
  #isHeld = false;

  constructor() {
    this.#held.promise.catch(() => {}); // a connection that fails before anybody waits for it
  }

  get held(): Promise<void> {
    return this.#held.promise;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  hear(bytes: Uint8Array): void {
    if (this.#isHeld || this.#text.length > MAX_GREETING_BYTES) return;
    this.#text += Buffer.from(bytes).toString("latin1");
    const status = /^HTTP\/1\.1 (\d{3})[^\n]*\r\n/.exec(this.#text)?.[1];
    const [head, body] = this.#text.split("\r\n\r\n", 2);
    if (status === undefined || head === undefined || body === undefined) return;
    if (status === "200" || status === "404") this.#hold();
    else this.fail(HoldfastError.fromBody(jsonOf(body)) ?? garbled(`status ${status} for a watch`));
  }

  /** Does nothing once it is held. */
  fail(error: HoldfastError): void {
    this.#held.reject(error);
  }

  #hold(): void {
    this.#isHeld = true;
    this.#held.resolve();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
