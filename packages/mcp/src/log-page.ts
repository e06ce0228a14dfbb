import type { LogEvent } from "holdfast";
import { wholeEnd, wholeStart } from "./utf8-edges.ts";

type Stream = "stdout" | "stderr";

interface Piece {
  readonly stream: Stream;
  readonly bytes: Uint8Array;
}

/** A part of a log, in the order in which it was written. */
export interface LogPage {
  readonly pieces: readonly Piece[];
  /** Where the next page begins. */
  readonly nextOffset: number;
  /** What the log no longer had of this part. */
  readonly droppedBytes: number;
  /** Whether this was all that there is for now. */
  readonly isLast: boolean;
}

/** Reads until there is no more, or so many bytes are there; never ends within a character if there is more. */
export async function readPage(
  events: AsyncIterable<LogEvent>,
  { since, maxBytes }: { since: number; maxBytes: number },
): Promise<LogPage> {
  const pieces: Piece[] = [];
  let nextOffset = since;
  let droppedBytes = 0;
  let room = maxBytes;
  for await (const event of events) {
    if (event.type === "truncated") {
      droppedBytes += event.to - event.from;
      nextOffset = event.to;
    } else if (event.type === "stdout" || event.type === "stderr") {
      const fits = event.bytes.length <= room;
      const within = event.bytes.subarray(0, room);
      const bytes = fits ? within : within.subarray(0, wholeEnd(within));
      pieces.push({ stream: event.type, bytes });
      nextOffset = event.offset + bytes.length;
      room -= bytes.length;
      if (!fits) return { pieces, nextOffset, droppedBytes, isLast: false };
    }
  }
  return { pieces, nextOffset, droppedBytes, isLast: true };
}

/** The bytes of one stream, or of both as they were written. */
export function bytesOf({ pieces }: Pick<LogPage, "pieces">, stream?: Stream): Uint8Array {
  const wanted = pieces.filter((piece) => stream === undefined || piece.stream === stream);
  const all = new Uint8Array(wanted.reduce((sum, { bytes }) => sum + bytes.length, 0));
  let at = 0;
  for (const { bytes } of wanted) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

/** The last bytes of something that has more before them, not beginning within a character. */
export function endOf(bytes: Uint8Array, maxBytes: number): Uint8Array {
  const end = bytes.subarray(Math.max(0, bytes.length - maxBytes));
  return end.subarray(wholeStart(end));
}
