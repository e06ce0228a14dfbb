import { SSE_KEEP_ALIVE } from "@holdfast/protocol";

/** One server-sent event, or that there was none for a while. */
export type Sent = { readonly id: number | string; readonly data: unknown } | "quiet";

/** Under the silence after which proxies and clients give a connection up. */
const KEEP_ALIVE_MS = 10_000;

/**
 * The events as a body. They have no names, so that a browser's `onmessage` sees each; the `id` lets its own reconnect
 * continue after it. `end` tells that there will be no more, which a broken connection does not.
 */
export function eventStream(events: AsyncGenerator<Sent>, onLeave: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let sentAt = performance.now();
  const next = async (): Promise<string | undefined> => {
    for (;;) {
      const { done, value } = await events.next();
      if (done) return undefined;
      if (value !== "quiet") return `id: ${value.id}\ndata: ${JSON.stringify(value.data)}\n\n`;
      if (performance.now() - sentAt >= KEEP_ALIVE_MS) return SSE_KEEP_ALIVE;
    }
  };
  return new ReadableStream({
    start(controller) {
      // The headers leave with the first byte: who follows a silent sandbox must not wait for them.
      controller.enqueue(encoder.encode(SSE_KEEP_ALIVE));
    },
    async pull(controller) {
      const text = await next();
      sentAt = performance.now();
      controller.enqueue(encoder.encode(text ?? "event: end\ndata: {}\n\n"));
      if (text === undefined) controller.close();
    },
    async cancel() {
      onLeave();
      await events.return(undefined);
    },
  });
}
