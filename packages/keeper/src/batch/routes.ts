import { BatchReadRequest, BatchRoot } from "@holdfast/protocol";
import type { Pending } from "../files/pending.ts";
import type { Call, Routes } from "../http/guard.ts";
import { applyBatch } from "./apply.ts";
import { readBatch } from "./read.ts";

/** Many small files in one request: what a sync needs, for which a request a file would be too slow. */
export function batchRoutes({
  pending,
  recovered,
}: {
  pending: Pending;
  recovered: Promise<unknown>;
}): Routes {
  return {
    "/v1/files/batch": {
      POST: async (call) => {
        const { root } = call.query(BatchRoot);
        await recovered;
        const body = call.request.body ?? nothing();
        return Response.json({ results: await applyBatch({ root, body, check: call.checkClaim }, pending) });
      },
    },
    "/v1/files/batch/read": {
      POST: async (call) => {
        const request = await call.body(BatchReadRequest);
        await recovered;
        return streamed(call, readBatch(request));
      },
    },
  };
}

/** It is use until the last byte was taken, or nobody wants more. */
function streamed(call: Call, source: AsyncGenerator<Uint8Array>): Response {
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  call.busyUntil(over);
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (to) => {
        const { value, done } = await source.next();
        if (!done) return to.enqueue(value);
        to.close();
        finish();
      },
      cancel: async () => {
        await source.return(undefined);
        finish();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "Content-Type": "application/octet-stream" } });
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
