import {
  encodeFrame,
  FRAME_HEADER_BYTES,
  FrameDecoder,
  frameKind,
  LOG_FRAMES_TYPE,
  type LogEvent,
  lazily,
  readFrameHeader,
  SSE_KEEP_ALIVE,
  toServerSentEvent,
  writeFrameHeader,
} from "@holdfast/protocol";
import { z } from "zod";
import type { Follower, Followers } from "../engine/followers.ts";
import { type LogPiece, LogReader, type LogSource } from "../engine/log-reader.ts";
import type { Stream } from "../engine/log-writer.ts";
import type { Wake } from "../engine/wake.ts";
import type { Call } from "./guard.ts";

/** A log and what is known about its end. */
export interface LogToRead extends LogSource {
  readonly changed: Wake;
  /** Who follows it while it is written; they pace its program. */
  readonly followers?: Followers;
  /** How it ended; `undefined` while it is still written to. */
  end(): LogEvent | undefined;
}

const Flag = lazily(() =>
  z.enum(["true", "false", "1", "0", ""]).transform((text) => text === "true" || text === "1" || text === ""),
);
const LogQuery = lazily(() =>
  z.strictObject({
    since: z.coerce.number().int().min(0).optional(),
    follow: Flag.default(false),
    stream: z.enum(["stdout", "stderr"]).optional(),
  }),
);

// Keeps proxies and browsers from taking silence for death.
const KEEP_ALIVE_MS = 15_000;

/** Answers with a log: server-sent events, raw bytes or frames, whichever the caller accepts. */
export function logResponse(call: Call, log: LogToRead): Response {
  const query = call.query(LogQuery);
  const since = query.since ?? lastEventId(call.request) ?? 0;
  const form = formOf(call.request.headers.get("Accept") ?? "");
  const reader = new LogReader(log, since);
  const follower = query.follow ? log.followers?.join(since) : undefined;
  const gone = new AbortController();
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (to) => {
        const first = pulls++ === 0;
        const { stream, follow } = query;
        return pull({ to, first, log, reader, follower, form, stream, follow, signal: gone.signal });
      },
      cancel: () => {
        gone.abort();
        reader.close();
        follower?.leave();
      },
    },
    { highWaterMark: 0 }, // nothing is read ahead of what the client takes
  );
  return new Response(body, { headers: { "Content-Type": form.type, "Cache-Control": "no-store" } });
}

interface Pull {
  readonly to: ReadableStreamDefaultController<Uint8Array>;
  readonly first: boolean;
  readonly log: LogToRead;
  readonly reader: LogReader;
  readonly follower: Follower | undefined;
  readonly form: Form;
  readonly stream: Stream | undefined;
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

/** Enqueues once, or closes. */
async function pull(request: Pull): Promise<void> {
  const { to, log, reader, follower, form, stream, follow, signal } = request;
  follower?.moved(reader.offset); // asked for more: what was given out before has been taken
  const canKeepAlive = form.keepAlive.length > 0;
  // The runtime sends the headers with the first bytes: without any, a client would not know that it is heard.
  const timeoutMs = request.first && canKeepAlive ? 0 : KEEP_ALIVE_MS;
  while (!signal.aborted) {
    const end = log.end(); // asked before the last read, so that nothing written before the end is missed
    const piece = reader.next();
    if (piece !== undefined) {
      const bytes = form.piece(piece, stream);
      if (bytes.length === 0) continue;
      return to.enqueue(bytes);
    }
    if (end !== undefined || !follow) {
      const last = end === undefined ? undefined : form.end(end);
      if (last !== undefined && last.length > 0) to.enqueue(last);
      reader.close();
      follower?.leave();
      return to.close();
    }
    const woken = await log.changed.wait({ timeoutMs, signal });
    if (woken === "late" && canKeepAlive) return to.enqueue(form.keepAlive);
  }
}

/** One representation of a log. */
interface Form {
  readonly type: string;
  readonly keepAlive: Uint8Array;
  piece(piece: LogPiece, stream: Stream | undefined): Uint8Array;
  end(event: LogEvent): Uint8Array;
}

const NOTHING = new Uint8Array(0);

const frames: Form = {
  type: LOG_FRAMES_TYPE,
  keepAlive: keepAliveFrame(),
  piece(piece, stream) {
    if (piece.type === "truncated") return encodeFrame(piece);
    return stream === undefined
      ? piece.bytes
      : Buffer.concat(payloads(piece.bytes, stream).map(({ frame }) => frame));
  },
  end: encodeFrame,
};

const raw: Form = {
  type: "application/octet-stream",
  keepAlive: NOTHING,
  piece(piece, stream) {
    if (piece.type === "truncated") return NOTHING; // bytes alone cannot say it; the other forms do
    return Buffer.concat(payloads(piece.bytes, stream).map(({ payload }) => payload));
  },
  end: () => NOTHING,
};

const events: Form = {
  type: "text/event-stream",
  keepAlive: Buffer.from(SSE_KEEP_ALIVE),
  piece(piece, stream) {
    if (piece.type === "truncated") return Buffer.from(toServerSentEvent(piece));
    const decoded = [...new FrameDecoder().push(piece.bytes)];
    const wanted = stream === undefined ? decoded : decoded.filter(({ type }) => type === stream);
    return Buffer.from(wanted.map(toServerSentEvent).join(""));
  },
  end: (event) => Buffer.from(toServerSentEvent(event)),
};

function formOf(accept: string): Form {
  return [frames, raw].find(({ type }) => accept.includes(type)) ?? events;
}

function payloads(
  bytes: Uint8Array,
  stream: Stream | undefined,
): { frame: Uint8Array; payload: Uint8Array }[] {
  const found: { frame: Uint8Array; payload: Uint8Array }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { kind, length } = readFrameHeader(bytes, at);
    const next = at + FRAME_HEADER_BYTES + length;
    if (stream === undefined || kind === frameKind[stream]) {
      found.push({ frame: bytes.subarray(at, next), payload: bytes.subarray(at + FRAME_HEADER_BYTES, next) });
    }
    at = next;
  }
  return found;
}

function keepAliveFrame(): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES);
  writeFrameHeader(frame, { kind: frameKind.keepAlive, length: 0, offset: 0 });
  return frame;
}

function lastEventId(request: Request): number | undefined {
  const text = request.headers.get("Last-Event-ID") ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
