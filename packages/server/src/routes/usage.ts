import { Usage, UsageQuery } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { type App, type AppDeps, newApp } from "../app.ts";
import { ask, passOn, queryOf } from "../http/proxy.ts";
import { byId, refusals } from "./shared.ts";

const usage = createRoute({
  operationId: "getUsage",
  method: "get",
  path: "/sandboxes/{id}/usage",
  summary: "What it uses now: CPU, memory, disk; with follow, samples as server-sent events. Wakes nothing",
  request: { params: byId, query: UsageQuery },
  responses: {
    200: {
      description: "one sample, or one after the other while somebody listens",
      content: { "application/json": { schema: Usage }, "text/event-stream": { schema: Usage } },
    },
    ...refusals,
  },
});

export function usageRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();
  app.openapi(usage, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    if (c.req.valid("query").follow === "true") return passOn(c, inUse, "/usage");
    return c.json(await ask(c, inUse, { method: "GET", path: `/usage${queryOf(c)}` }, Usage), 200);
  });
  return app;
}
