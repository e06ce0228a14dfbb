import { UsageQuery } from "@holdfast/protocol";
import type { Call, Routes } from "../http/guard.ts";
import { UsageMeter, type UsageParts } from "./usage.ts";

export function usageRoutes(parts: UsageParts): Routes {
  const meter = new UsageMeter(parts);
  return { "/v1/usage": { GET: (call) => usageResponse(call, meter) } };
}

/** One sample, or one after the other while somebody takes them. */
async function usageResponse(call: Call, meter: UsageMeter): Promise<Response> {
  const { follow, everyMs } = call.query(UsageQuery);
  if (follow === "false") return Response.json(await meter.sample());
  let pulls = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(to) {
        if (pulls++ > 0)
          await new Promise<void>((resolve) => {
            timer = setTimeout(resolve, everyMs);
          });
        to.enqueue(Buffer.from(`data: ${JSON.stringify(await meter.sample())}\n\n`));
      },
      cancel: () => clearTimeout(timer),
    },
    { highWaterMark: 0 }, // nothing is measured that nobody takes
  );
  return new Response(body, {
    headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store" },
  });
}
