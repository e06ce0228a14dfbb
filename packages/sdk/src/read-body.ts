import { HoldfastError } from "@holdfast/protocol/errors";
import { failureOfConnection } from "./failures.ts";

/** Where a broken connection's error is left, for whoever may make a new one; nothing if the server ended it. */
export interface BrokenOff {
  error?: unknown;
}

interface Body {
  response: Response;
  signal: AbortSignal | undefined;
  /** The server's, for the error. */
  url: string;
  ended: BrokenOff;
}

// The server sends a sign of life every 15 s: after three missed ones the connection is dead, whatever TCP thinks.
const SILENCE_MS = 45_000;

/** The pieces of a body that may go on for hours. An abort is thrown; a connection that breaks ends it, with `ended`. */
export async function* readBody({ response, signal, url, ended }: Body): AsyncGenerator<Uint8Array> {
  const reader = bodyOf(response).getReader();
  const leave = (): void => void reader.cancel().catch(() => undefined);
  const silence = new Silence(leave);
  signal?.addEventListener("abort", leave, { once: true });
  try {
    for (;;) {
      const chunk = await silence.during(reader.read()).catch((error: unknown) => {
        ended.error = failureOfConnection(error, url);
      });
      signal?.throwIfAborted();
      if (chunk === undefined || chunk.done) return;
      yield chunk.value;
    }
  } finally {
    silence.stop();
    signal?.removeEventListener("abort", leave);
    // The consumer may have left in the middle: the server must not go on sending. A broken body refuses, rightly.
    await reader.cancel().catch(() => undefined);
  }
}

/** Notices that nothing comes. One timer, however much does: a stream may have thousands of pieces in a second. */
class Silence {
  readonly #onSilence: () => void;
  #timer: ReturnType<typeof setTimeout>;
  /** Since when somebody has been waiting; nobody does who is busy with what came. */
  #since: number | undefined;
  #isDead = false;

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
    this.#timer = setTimeout(() => this.#look(), SILENCE_MS);
  }

  /** Rejects if `coming` was ended because it never came. */
  async during<T>(coming: Promise<T>): Promise<T> {
    this.#since = performance.now();
    const came = await coming;
    this.#since = undefined;
    if (this.#isDead) throw new Error(`nothing was heard for ${SILENCE_MS / 1000} s`);
    return came;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    const leftMs = SILENCE_MS - (now - (this.#since ?? now));
    this.#isDead = leftMs <= 0;
    if (this.#isDead) this.#onSilence();
    else this.#timer = setTimeout(() => this.#look(), leftMs);
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (response.body !== null) return response.body;
  throw new HoldfastError("internal", "the server answered a stream without a body");
}
