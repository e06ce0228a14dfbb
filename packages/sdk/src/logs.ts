import { HoldfastError } from "@holdfast/protocol/errors";
import { FrameDecoder, LOG_FRAMES_TYPE, type LogEvent } from "@holdfast/protocol/log-frames";
import { Patience } from "./backoff.ts";
import type { Client } from "./client.ts";
import { failureOfConnection } from "./failures.ts";
import { type BrokenOff, readBody } from "./read-body.ts";

/** Which part of a log to read. */
export interface LogOptions {
  /** The offset to begin at. Default: 0, the oldest that is still there. */
  since?: number | undefined;
  /** Go on with what is written later, until the end of the program. */
  follow?: boolean | undefined;
  /** Only one of the two streams. Offsets count both all the same. */
  stream?: "stdout" | "stderr" | undefined;
  /** Aborting ends the reading; it does nothing to the program. */
  signal?: AbortSignal | undefined;
}

/**
 * The events of a log from an offset on. A connection that breaks, and a server that restarts, go unnoticed: reading
 * continues at the next byte. Ends after `exit` or `lost`, and without `follow` at the log's present end.
 */
export async function* readLogs(client: Client, path: string, options: LogOptions): AsyncGenerator<LogEvent> {
  const patience = new Patience(client.patienceMs);
  let next = options.since ?? 0;
  let again = false;
  for (;;) {
    const ended: BrokenOff = {};
    const connection = { client, path, since: next, options, patience, ended, again };
    for await (const event of oneConnection(connection)) {
      const fresh = notSeenBefore(event, next);
      if (fresh === undefined) continue;
      next = offsetAfter(fresh);
      yield fresh;
      if (fresh.type === "exit" || fresh.type === "lost") return;
    }
    again = true;
    if (ended.error === undefined && options.follow !== true) return;
    await patience.pause(ended.error ?? closedEarly(client), options.signal);
  }
}

interface Connection {
  client: Client;
  path: string;
  since: number;
  options: LogOptions;
  patience: Patience;
  ended: BrokenOff;
  /** Whether this follows a connection that broke. */
  again: boolean;
}

async function* oneConnection(connection: Connection): AsyncGenerator<LogEvent> {
  const { client, options, patience, ended } = connection;
  const decoder = new FrameDecoder();
  const response = await open(connection);
  for await (const chunk of readBody({ response, signal: options.signal, url: client.url, ended })) {
    patience.reset();
    yield* decoder.push(chunk);
  }
}

async function open({ client, path, since, options, again }: Connection): Promise<Response> {
  const { follow, stream, signal } = options;
  const query = { since, follow, stream };
  const headers = { Accept: LOG_FRAMES_TYPE };
  try {
    return await client.open({ method: "GET", path, query, headers, again: "safe", signal });
  } catch (error) {
    throw again && error instanceof HoldfastError && error.code === "wrong_state"
      ? endedUnderIt(error, since)
      : error;
  }
}

// Not a `lost` event: what was written before the end is still in the log, and so is what became of the program.
function endedUnderIt(cause: HoldfastError, nextOffset: number): HoldfastError {
  return new HoldfastError("wrong_state", `the log could not be followed to its end: ${cause.message}`, {
    cause,
    details: { ...cause.details, nextOffset },
    hint: `Start the sandbox and read on from offset ${nextOffset}: the log says what became of the program.`,
    started: "yes",
  });
}

/** What of an event lies at or after `next`: a server may answer from the frame in which an offset falls. */
function notSeenBefore(event: LogEvent, next: number): LogEvent | undefined {
  switch (event.type) {
    case "stdout":
    case "stderr": {
      const seen = next - event.offset;
      if (seen <= 0) return event;
      if (seen >= event.bytes.length) return undefined;
      return { ...event, offset: next, bytes: event.bytes.subarray(seen) };
    }
    case "truncated":
      return event.to <= next ? undefined : { ...event, from: Math.max(event.from, next) };
    default:
      return event;
  }
}

function offsetAfter(event: LogEvent): number {
  if (event.type === "truncated") return event.to;
  return "bytes" in event ? event.offset + event.bytes.length : event.offset;
}

function closedEarly(client: Client): HoldfastError {
  return failureOfConnection(new Error("the log ended before the program did"), client.url);
}
