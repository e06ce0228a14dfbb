import { HoldfastError } from "@holdfast/protocol/errors";
import type { LogEvent } from "@holdfast/protocol/log-frames";
import type { LogOptions } from "./logs.ts";

/** Where in a log to look, and for how long. */
export interface WaitForLogOptions {
  /** Default: 60 s. */
  timeoutMs?: number | undefined;
  /** The offset to begin at. Default: 0. */
  since?: number | undefined;
  stream?: "stdout" | "stderr" | undefined;
  signal?: AbortSignal | undefined;
}

/** What was found in a log, and where. */
export interface LogMatch {
  /** The match, with its groups if the pattern has any. */
  match: RegExpMatchArray;
  stream: "stdout" | "stderr";
  /** Where the piece of output that completed the match ends: read on from here. */
  nextOffset: number;
}

interface Source {
  processId: string;
  logs(options: LogOptions): AsyncGenerator<LogEvent>;
}

// How much text before the newest piece a match may span. A pattern for one line needs far less.
const WINDOW_CHARS = 64 * 1024;

/** Reads a log until the pattern is found. stdout and stderr are searched apart: interleaving splits no match. */
export async function waitForLog(
  source: Source,
  pattern: string | RegExp,
  options: WaitForLogOptions,
): Promise<LogMatch> {
  const { timeoutMs = 60_000, since, stream } = options;
  const search = { stdout: new Window(toRegExp(pattern)), stderr: new Window(toRegExp(pattern)) };
  const timeUp = new AbortController();
  const timer = setTimeout(() => timeUp.abort(timedOut(source, pattern, timeoutMs)), timeoutMs);
  const signal =
    options.signal === undefined ? timeUp.signal : AbortSignal.any([options.signal, timeUp.signal]);
  try {
    for await (const event of source.logs({ since, stream, follow: true, signal })) {
      if (event.type !== "stdout" && event.type !== "stderr") continue;
      const match = search[event.type].add(event.bytes);
      if (match !== null) return { match, stream: event.type, nextOffset: event.offset + event.bytes.length };
    }
  } finally {
    clearTimeout(timer);
  }
  throw new HoldfastError("wrong_state", `process ${source.processId} ended before its log had ${pattern}`, {
    details: { processId: source.processId },
    hint: "Read its log to see why it ended.",
  });
}

/** The last part of one stream as text; characters cut between two pieces are put together again. */
class Window {
  readonly #decoder = new TextDecoder();
  readonly #pattern: RegExp;
  #text = "";

  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  add(bytes: Uint8Array): RegExpMatchArray | null {
    this.#text = this.#text.slice(-WINDOW_CHARS) + this.#decoder.decode(bytes, { stream: true });
    return this.#text.match(this.#pattern);
  }
}

function toRegExp(pattern: string | RegExp): RegExp {
  if (typeof pattern === "string") return new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // `g` and `y` would make a match depend on the one before, and hide the groups.
  return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
}

function timedOut(source: Source, pattern: string | RegExp, timeoutMs: number): HoldfastError {
  const message = `the log of process ${source.processId} did not have ${pattern} within ${timeoutMs} ms`;
  return new HoldfastError("wrong_state", message, {
    details: { processId: source.processId, timeoutMs },
    hint: "The process still runs. Read its log, or wait longer.",
    retryable: true,
  });
}
