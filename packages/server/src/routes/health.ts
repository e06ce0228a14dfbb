import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { answer } from "./shared.ts";

const Health = z.object({ status: z.enum(["ok", "not ready"]), reason: z.string().optional() });

const healthz = createRoute({
  operationId: "getHealth",
  method: "get",
  path: "/healthz",
  summary: "Whether the server's process runs",
  security: [],
  responses: { 200: answer("the process runs", Health) },
});

const readyz = createRoute({
  operationId: "getReadiness",
  method: "get",
  path: "/readyz",
  summary: "Whether the server serves, and if not, why",
  security: [],
  responses: { 200: answer("it serves", Health), 503: answer("not yet, and why", Health) },
});

export function healthRoutes({ notReady }: AppDeps): App {
  const app = newApp();
  app.openapi(healthz, (c) => c.json({ status: "ok" as const }, 200));
  app.openapi(readyz, (c) => {
    const reason = notReady();
    return reason === undefined
      ? c.json({ status: "ok" as const }, 200)
      : c.json({ status: "not ready" as const, reason }, 503);
  });
  return app;
}
