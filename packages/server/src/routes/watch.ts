import { WatchQuery } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { passOn } from "../http/proxy.ts";
import { byId, refusals } from "./shared.ts";

const watch = createRoute({
  operationId: "watchFiles",
  method: "get",
  path: "/sandboxes/{id}/watch",
  summary: "What happens to files, as server-sent events; neither wakes the sandbox nor holds it awake",
  description:
    "`ready` first, then `created`, `modified`, `deleted` and `moved`; `resync` whenever something may have been " +
    "missed. Each event's id is a cursor, with which `Last-Event-ID` or `since` goes on.",
  request: {
    params: byId,
    query: WatchQuery,
    headers: z.object({ "last-event-id": z.string().optional().describe("as `since`, and before it") }),
  },
  responses: {
    200: { description: "events", content: { "text/event-stream": { schema: z.string() } } },
    ...refusals,
  },
});

export function watchRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();
  app.openapi(watch, async (c) => passOn(c, await sandboxes.look(c.req.valid("param").id), "/file-watch"));
  return app;
}
