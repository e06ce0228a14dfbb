import { Change } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { describe } from "../http/describe.ts";
import { eventStream, type Sent } from "../http/event-stream.ts";
import { neverHeldBack } from "../http/proxy.ts";
import type { ChangeNews } from "../lifecycle/changes.ts";
import { refusals } from "./shared.ts";

const follow = createRoute({
  operationId: "followChanges",
  method: "get",
  path: "/events",
  summary: "Every sandbox that changes, as it then is, as server-sent events",
  description:
    "`resync` first, and whenever something may have been missed: list the sandboxes then. Each event's id is a " +
    "cursor, with which `Last-Event-ID` or `since` goes on. One that changes often is told as it is in the end.",
  request: {
    query: z.object({ since: z.string().max(200).optional().describe("the id of the last event") }),
    headers: z.object({ "last-event-id": z.string().max(200).optional().describe("before `since`") }),
  },
  responses: {
    200: { description: "changes", content: { "text/event-stream": { schema: Change } } },
    ...refusals,
  },
});

export function changeRoutes({ lifecycle: { changes } }: AppDeps): App {
  const app = newApp();
  app.openapi(follow, (c) => {
    const since = c.req.valid("header")["last-event-id"] ?? c.req.valid("query").since;
    c.env.mayBeSilent?.();
    c.header("Content-Type", "text/event-stream");
    neverHeldBack(c);
    const left = new AbortController();
    const signal = AbortSignal.any([c.req.raw.signal, left.signal]);
    const news = changes.follow({ signal, ...(since !== undefined && { since }) });
    return c.body(eventStream(sent(news), () => left.abort()));
  });
  return app;
}

async function* sent(news: AsyncIterable<ChangeNews | "quiet">): AsyncGenerator<Sent> {
  for await (const one of news) yield one === "quiet" ? one : { id: one.cursor, data: shown(one) };
}

function shown(news: ChangeNews): Change {
  switch (news.type) {
    case "resync":
      return { type: "resync", reason: news.reason };
    case "changed":
      return { type: "changed", sandbox: describe(news.holding) };
    case "gone":
      return { type: "gone", sandboxId: news.sandboxId };
    default:
      return news satisfies never;
  }
}
