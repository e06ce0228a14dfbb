import { HoldfastError } from "@holdfast/protocol/errors";
import { Patience } from "./backoff.ts";
import { type FilePath, fileQuery } from "./file-paths.ts";
import type { FileOptions } from "./files.ts";
import { type BrokenOff, readBody } from "./read-body.ts";
import { conditionHeaders, type Scope } from "./scope.ts";

/** Which part of a file to read. */
export interface ReadOptions extends FileOptions {
  /** The first byte that is wanted. Default: 0. */
  start?: number | undefined;
  /** The byte after the last that is wanted. Default: the end of the file. */
  end?: number | undefined;
  /** Read only this very content; else `precondition_failed`. */
  ifMatch?: string | undefined;
}

/** A file that is being read. */
export interface OpenFile {
  /** The bytes, read as they are taken. Cancel it, or read it to its end. */
  readonly stream: ReadableStream<Uint8Array>;
  /** How many bytes the stream will have. */
  readonly sizeBytes: number;
  readonly etag: string;
  readonly mode: number;
}

/** Opens a file for reading; a broken connection is made anew, and goes on behind the last byte that was taken. */
export async function readFile(scope: Scope, path: FilePath, options: ReadOptions): Promise<OpenFile> {
  const ask = (start: number, ifMatch: string | undefined) =>
    request(scope, path, { ...options, start, ifMatch });
  const from = options.start ?? 0;
  const first = await ask(from, options.ifMatch);
  const etag = (first.headers.get("ETag") ?? "").replaceAll('"', "");
  const sizeBytes = lengthOf(first.headers);
  const mode = Number.parseInt(first.headers.get("Holdfast-File-Mode") ?? "644", 8);
  const pieces = piecesOf({
    scope,
    first,
    sizeBytes,
    signal: options.signal,
    again: (at) => ask(from + at, etag),
  });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(to) {
        const { done, value } = await pieces.next();
        if (done) to.close();
        else to.enqueue(value);
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, sizeBytes, etag, mode };
}

interface Pieces {
  readonly scope: Scope;
  readonly first: Response;
  readonly sizeBytes: number;
  readonly signal: AbortSignal | undefined;
  /** Asks for the rest after this many bytes. */
  again(at: number): Promise<Response>;
}

function lengthOf(headers: Headers): number {
  const length = headers.get("Holdfast-Content-Length") ?? headers.get("Content-Length");
  if (length !== null) return Number(length);
  throw new HoldfastError("unsupported", "the sandbox does not say how long the file is", {
    hint: "It was started by an older release: stop it, and the next use starts it with this one.",
    started: "no",
  });
}

async function* piecesOf({ scope, first, sizeBytes, signal, again }: Pieces): AsyncGenerator<Uint8Array> {
  const { client } = scope;
  const patience = new Patience(client.patienceMs);
  let response = first;
  for (let at = 0; ; ) {
    const ended: BrokenOff = {};
    for await (const piece of readBody({ response, signal, url: client.url, ended })) {
      at += piece.length;
      patience.reset();
      yield piece;
    }
    if (at >= sizeBytes) return;
    await patience.pause(ended.error ?? cutShort(at, sizeBytes), signal);
    response = await again(at);
  }
}

function request(scope: Scope, path: FilePath, options: ReadOptions): Promise<Response> {
  const { start = 0, end, ifMatch, root, signal } = options;
  const isRange = start > 0 || end !== undefined;
  return scope.client.open({
    method: "GET",
    path: `${scope.path}/files?${fileQuery({ path, root })}`,
    headers: {
      ...conditionHeaders(options),
      ...(ifMatch !== undefined && { "If-Match": `"${ifMatch}"` }),
      ...(isRange && { Range: `bytes=${start}-${end === undefined ? "" : end - 1}` }),
    },
    again: "safe",
    signal,
  });
}

function cutShort(at: number, sizeBytes: number): HoldfastError {
  return new HoldfastError("unavailable", `the file's bytes ended after ${at} of ${sizeBytes}`, {
    hint: "it may have been changed while it was read: read it again",
  });
}
