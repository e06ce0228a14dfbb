import type { LogEvent } from "./log-frames.ts";

/** A log event for `text/event-stream`; the `id` is the offset after it, so that a browser's own reconnect continues exactly. */
export function toServerSentEvent(event: LogEvent): string {
  switch (event.type) {
    case "stdout":
    case "stderr":
      return block(event.type, event.offset + event.bytes.length, {
        offset: event.offset,
        data: base64(event.bytes),
      });
    case "truncated":
      return block(event.type, event.to, { from: event.from, to: event.to });
    case "exit":
    case "lost": {
      const { type, ...facts } = event;
      return block(type, event.offset, facts);
    }
    default:
      return event satisfies never;
  }
}

export const SSE_KEEP_ALIVE = ": keep-alive\n\n";

function block(type: string, id: number, data: unknown): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(binary);
}
