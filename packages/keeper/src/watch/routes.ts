import { SSE_KEEP_ALIVE, type WatchEvent, WatchQuery } from "@holdfast/protocol";
import type { Call, Routes } from "../http/guard.ts";
import { type FileWatch, resyncMessages } from "./file-watch.ts";
import type { FileWatches } from "./file-watches.ts";

// Keeps proxies and browsers from taking silence for death.
const KEEP_ALIVE_MS = 15_000;
const EVENTS_AT_ONCE = 256;

export function watchRoutes(watches: FileWatches): Routes {
  return { "/v1/file-watch": { GET: (call) => watchResponse(call, watches) } };
}

async function watchResponse(call: Call, watches: FileWatches): Promise<Response> {
  const { since, ...target } = call.query(WatchQuery);
  const cursor = call.request.headers.get("Last-Event-ID") ?? since;
  const { watch, leave } = await watches.join(target);
  const gone = new AbortController();
  const reading = new Reading(watch, cursor);
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (to) => {
        const text = await reading.next(gone.signal);
        if (text !== undefined) return to.enqueue(Buffer.from(text));
        leave();
        if (!gone.signal.aborted) to.close();
      },
      cancel: () => {
        gone.abort();
        leave();
      },
    },
    { highWaterMark: 0 }, // a slow client stays behind in the ring, and costs no memory
  );
  return new Response(body, {
    headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store" },
  });
}

/** One client's way through a watch's ring. */
class Reading {
  readonly #watch: FileWatch;
  #first: string | undefined;
  #next: number;

  constructor(watch: FileWatch, cursor: string | undefined) {
    const { ring } = watch;
    this.#watch = watch;
    const place = cursor === undefined ? undefined : ring.placeOf(cursor);
    this.#next = place ?? ring.next;
    this.#first = block(ring.cursorAt(this.#next), { type: "ready" });
    if (cursor !== undefined && place === undefined) this.#first += this.#resync("cursor_unknown");
  }

  /** What to send now; `undefined` at the end. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined) return first;
    const { ring } = this.#watch;
    while (!signal.aborted) {
      const isOver = this.#watch.isOver; // asked before the read, so that the last words are not missed
      const events = ring.read(this.#next, EVENTS_AT_ONCE);
      if (events === undefined) {
        this.#next = ring.next;
        return this.#resync("cursor_expired");
      }
      this.#next += events.length;
      if (events.length > 0) return events.map(({ cursor, event }) => block(cursor, event)).join("");
      if (isOver) return undefined;
      if ((await ring.changed.wait({ timeoutMs: KEEP_ALIVE_MS, signal })) === "late") return SSE_KEEP_ALIVE;
    }
    return undefined;
  }

  #resync(reason: "cursor_expired" | "cursor_unknown"): string {
    const event = { type: "resync", reason, message: resyncMessages[reason] } as const;
    return block(this.#watch.ring.cursorAt(this.#next), event);
  }
}

function block(cursor: string, { type, ...data }: WatchEvent): string {
  return `id: ${cursor}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
