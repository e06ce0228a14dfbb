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
  const onAbort = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const chunk = await readChunk(reader).catch((error: unknown) => {
        ended.error = failureOfConnection(error, url);
      });
      signal?.throwIfAborted();
      if (chunk === undefined) return;
      yield chunk;
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // The consumer may have left in the middle: the server must not go on sending. A broken body refuses, rightly.
    await reader.cancel().catch(() => undefined);
  }
}

async function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing was heard for ${SILENCE_MS / 1000} s`)), SILENCE_MS);
  });
  try {
    const { done, value } = await Promise.race([reader.read(), silence]);
    return done ? undefined : value;
  } finally {
    clearTimeout(timer);
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (response.body !== null) return response.body;
  throw new HoldfastError("internal", "the server answered a stream without a body");
}
