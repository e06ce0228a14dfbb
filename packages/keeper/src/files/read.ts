import { HoldfastError } from "@holdfast/protocol";
import { matches } from "./conditions.ts";
import { closed, etagOf, readAt } from "./describe.ts";
import { type Fd, isInProc, O, stat, typeOf } from "./fs-calls.ts";
import { openTarget, type Target } from "./paths.ts";

// As much as a socket takes at once, in few turns of the loop.
const READ_AT_A_TIME = 512 * 1024;

export interface ReadRequest {
  readonly target: Target;
  readonly range: string | null;
  readonly ifMatch: string | null;
}

export interface Reading {
  readonly response: Response;
  /** Settles when the last byte was taken, or nobody wants more. */
  readonly over: Promise<void>;
}

/** Opens a regular file and answers with its bytes, as many at a time as the client takes. */
export function readFile({ target, range, ifMatch }: ReadRequest): Reading {
  // Not blocking: a pipe without a writer would hold us for ever.
  const file = openTarget(target, O.RDONLY | O.NONBLOCK);
  try {
    return answerWith(file, { target, range, ifMatch });
  } catch (error) {
    file[Symbol.dispose]();
    throw error;
  }
}

function answerWith(file: Fd, { target, range, ifMatch }: ReadRequest): Reading {
  const facts = stat(file.fd, new Uint8Array(0));
  if (typeOf(facts) !== "file") throw notAFile(target, typeOf(facts));
  if (isInProc(file.fd)) throw ofTheKeeper(target);
  const etag = etagOf(facts);
  if (ifMatch !== null && !matches(ifMatch, etag)) throw changed(target, etag);
  const part = partOf(range, facts.size);
  const { body, over } = streamOf(file, part);
  const headers = {
    "Content-Type": "application/octet-stream",
    "Content-Length": String(part.end - part.start),
    // Once more: what streams goes in chunks, and HTTP takes its length off on the way.
    "Holdfast-Content-Length": String(part.end - part.start),
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-store",
    ETag: `"${etag}"`,
    "Last-Modified": new Date(Number(facts.mtimeNs / 1_000_000n)).toUTCString(),
    "Holdfast-File-Mode": (facts.mode & 0o7777).toString(8).padStart(4, "0"),
    ...(part.isRange && { "Content-Range": `bytes ${part.start}-${part.end - 1}/${facts.size}` }),
  };
  return { response: new Response(body, { status: part.isRange ? 206 : 200, headers }), over };
}

interface Part {
  readonly start: number;
  readonly end: number;
  readonly isRange: boolean;
}

/** One range of bytes; several, or another unit, are answered with the whole, as HTTP has it. */
function partOf(range: string | null, size: number): Part {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? "");
  if (match === null || match[0] === "bytes=-") return { start: 0, end: size, isRange: false };
  const [, first = "", last = ""] = match;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  if (start < end) return { start, end, isRange: true };
  throw new HoldfastError("invalid_argument", `the range ${range} is not within the file's ${size} bytes`, {
    details: { sizeBytes: size },
  });
}

function streamOf(file: Fd, { start, end }: Part): { body: ReadableStream<Uint8Array>; over: Promise<void> } {
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  let at = start;
  let reading: Promise<unknown> = Promise.resolve();
  const finished = async () => {
    await reading; // a descriptor may not be closed under a read
    await closed(file.fd).catch(() => undefined);
    finish();
  };
  const pull = async (to: ReadableStreamDefaultController<Uint8Array>) => {
    if (at === end) {
      to.close();
      return finished();
    }
    const buffer = Buffer.allocUnsafe(Math.min(READ_AT_A_TIME, end - at));
    const read = readAt(file.fd, { buffer, at });
    reading = read.catch(() => 0);
    const length = await reading.then(() => read).catch(() => 0);
    if (length === 0) {
      // Shorter than we said: the connection breaks, so that nobody takes this for the whole.
      to.error(new Error("the file became shorter, or could not be read, while it was read"));
      return finished();
    }
    at += length;
    to.enqueue(buffer.subarray(0, length));
  };
  return { body: new ReadableStream({ pull, cancel: finished }, { highWaterMark: 0 }), over };
}

function notAFile({ path }: Target, type: string): HoldfastError {
  return new HoldfastError("wrong_state", `${path} is no file but a ${type}`, {
    hint: type === "directory" ? "list it, or read it as a tar archive" : "only files can be read",
    details: { path: path.toString(), type },
  });
}

function ofTheKeeper({ path }: Target): HoldfastError {
  return new HoldfastError("forbidden", `${path} is of the keeper's own /proc`, {
    hint: "read it with `cat` in exec: there it is about the work",
    details: { path: path.toString() },
  });
}

function changed({ path }: Target, etag: string): HoldfastError {
  return new HoldfastError("precondition_failed", `${path} is not what If-Match says any more`, {
    hint: "read it again from its beginning",
    details: { path: path.toString(), etag },
  });
}
