import type { RecordedEntry } from "@holdfast/core";
import { SandboxEvent } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { iso } from "../http/describe.ts";
import { eventStream, type Sent } from "../http/event-stream.ts";
import { neverHeldBack } from "../http/proxy.ts";
import { byId, refusals } from "./shared.ts";

const list = createRoute({
  operationId: "listEvents",
  method: "get",
  path: "/sandboxes/{id}/events",
  summary:
    "Its timeline, with the cause of every death; with follow, as server-sent events until it is deleted",
  request: {
    params: byId,
    query: z.object({
      since: z.coerce.number().int().min(0).default(0).describe("only entries after this `seq`"),
      limit: z.coerce.number().int().min(1).max(1000).default(1000),
      follow: z.enum(["true", "false"]).default("false"),
    }),
    headers: z.object({
      "last-event-id": z.coerce.number().int().min(0).optional().describe("as `since`, and before it"),
    }),
  },
  responses: {
    200: {
      description: "entries after `since`",
      content: {
        "application/json": { schema: z.object({ events: z.array(SandboxEvent) }) },
        "text/event-stream": { schema: z.string() },
      },
    },
    ...refusals,
  },
});

export function eventRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(list, async (c) => {
    const { id } = c.req.valid("param");
    const { limit, follow, ...query } = c.req.valid("query");
    const since = c.req.valid("header")["last-event-id"] ?? query.since;
    const entries = await sandboxes.timeline(id, { since, limit });
    if (follow === "false") return c.json({ events: entries.map(shown) }, 200);
    c.env.mayBeSilent?.();
    c.header("Content-Type", "text/event-stream");
    neverHeldBack(c);
    const left = new AbortController();
    const signal = AbortSignal.any([c.req.raw.signal, left.signal]);
    return c.body(eventStream(sent(sandboxes.follow(id, { since, signal })), () => left.abort()));
  });

  return app;
}

async function* sent(timeline: AsyncIterable<RecordedEntry | "quiet">): AsyncGenerator<Sent> {
  for await (const entry of timeline) yield entry === "quiet" ? entry : { id: entry.seq, data: shown(entry) };
}

function shown({ seq, at, type, cause, actor, detail }: RecordedEntry): SandboxEvent {
  return {
    seq,
    at: iso(at),
    type,
    ...(cause !== undefined && { cause }),
    ...(actor !== undefined && { actor }),
    detail: detail ?? {},
  };
}
