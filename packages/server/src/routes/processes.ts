import { PortWait, Process, ProcessList, ProcessRequest, SignalRequest } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppDeps, type AppEnv, newApp } from "../app.ts";
import { continuityHeaders, rememberedBy, withGeneration } from "../http/describe.ts";
import { withKey } from "../http/idempotency.ts";
import { passOn } from "../http/proxy.ts";
import { answer, byId, jsonBody, LogQuery, logAnswer, refusals } from "./shared.ts";

const byProcess = byId.extend({ processId: z.string() });
const one = { 200: answer("the process", Process), ...refusals };
const at = "/sandboxes/{id}/processes/{processId}";

const start = createRoute({
  method: "post",
  path: "/sandboxes/{id}/processes",
  summary: "Start a process that outlives this call; wakes the sandbox",
  request: { params: byId, headers: continuityHeaders, ...jsonBody(ProcessRequest) },
  responses: { 201: answer("it runs", Process), ...refusals },
});

const list = createRoute({
  method: "get",
  path: "/sandboxes/{id}/processes",
  summary: "Processes, running and ended",
  request: { params: byId, query: z.object({ sessionId: z.string().optional() }) },
  responses: { 200: answer("all of them", ProcessList), ...refusals },
});

const get = createRoute({ method: "get", path: at, request: { params: byProcess }, responses: one });

const logs = createRoute({
  method: "get",
  path: `${at}/logs`,
  summary: "Output from an offset: server-sent events, raw bytes, or frames",
  request: { params: byProcess, query: LogQuery },
  responses: { 200: logAnswer, ...refusals },
});

const stdin = createRoute({
  method: "post",
  path: `${at}/stdin`,
  summary: "Write to its standard input; the body streams",
  request: {
    params: byProcess,
    body: { content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } } },
  },
  responses: { 204: { description: "written" }, ...refusals },
});

const closeStdin = createRoute({
  method: "post",
  path: `${at}/stdin/close`,
  request: { params: byProcess },
  responses: { 204: { description: "closed" }, ...refusals },
});

const signal = createRoute({
  method: "post",
  path: `${at}/signal`,
  request: { params: byProcess, ...jsonBody(SignalRequest) },
  responses: one,
});

const kill = createRoute({
  method: "post",
  path: `${at}/kill`,
  summary: "End the whole tree, verified",
  request: { params: byProcess },
  responses: one,
});

const timeout = z.object({ timeoutMs: z.coerce.number().int().min(0).optional() });

const wait = createRoute({
  method: "get",
  path: `${at}/wait`,
  summary: "Answer when it has ended, or after timeoutMs with its state; never kills",
  request: { params: byProcess, query: timeout },
  responses: one,
});

const waitForPort = createRoute({
  method: "get",
  path: `${at}/wait-for-port`,
  summary: "Answer when this process tree listens on the port",
  request: { params: byProcess, query: timeout.extend({ port: z.coerce.number().int().min(1).max(65535) }) },
  responses: { 200: answer("whether it does", PortWait), ...refusals },
});

export function processRoutes({ sandboxes }: AppDeps): App {
  const app = newApp();

  app.openapi(start, async (c) => {
    c.env.mayBeSilent?.();
    const body = JSON.stringify(withKey(c, "processId", c.req.valid("json")));
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const process = await link.json({ method: "POST", path: "/processes", body }, Process);
    withGeneration(c, holding);
    return c.json(process, 201);
  });

  app.openapi(list, async (c) => {
    const { holding, link } = await sandboxes.look(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(
      await link.json({ method: "GET", path: `/processes${new URL(c.req.url).search}` }, ProcessList),
      200,
    );
  });

  app.openapi(get, async (c) => c.json(await ask(c, { method: "GET" }, Process), 200));
  app.openapi(kill, async (c) => c.json(await ask(c, { method: "POST", suffix: "/kill" }, Process), 200));
  app.openapi(wait, async (c) => c.json(await ask(c, { method: "GET", suffix: "/wait" }, Process), 200));
  app.openapi(waitForPort, async (c) =>
    c.json(await ask(c, { method: "GET", suffix: "/wait-for-port" }, PortWait), 200),
  );
  app.openapi(signal, async (c) => {
    const body = JSON.stringify(c.req.valid("json"));
    return c.json(await ask(c, { method: "POST", suffix: "/signal", body }, Process), 200);
  });

  app.openapi(logs, async (c) =>
    passOn(c, await sandboxes.look(c.req.valid("param").id), `${pathOf(c.req.valid("param"))}/logs`),
  );

  app.openapi(stdin, async (c) => tell(c, "/stdin", c.req.raw.body ?? ""));
  app.openapi(closeStdin, async (c) => tell(c, "/stdin/close"));

  /** Asks the keeper about one process; the query goes along. */
  async function ask<T>(
    c: Context<AppEnv>,
    { method, suffix = "", body }: { method: "GET" | "POST"; suffix?: string; body?: string },
    shape: z.ZodType<T>,
  ): Promise<T> {
    c.env.mayBeSilent?.();
    const { holding, link } = await sandboxes.look(c.req.param("id") ?? "");
    const path = pathOf({ processId: c.req.param("processId") ?? "" }) + suffix + new URL(c.req.url).search;
    const reply = await link.json(
      { method, path, signal: c.req.raw.signal, ...(body !== undefined && { body }) },
      shape,
    );
    withGeneration(c, holding);
    return reply;
  }

  async function tell(c: Context<AppEnv>, suffix: string, body?: BodyInit) {
    c.env.mayBeSilent?.();
    const { holding, link } = await sandboxes.look(c.req.param("id") ?? "");
    const path = pathOf({ processId: c.req.param("processId") ?? "" }) + suffix;
    const reply = await link.send({ method: "POST", path, ...(body !== undefined && { body }) });
    await reply.body?.cancel();
    withGeneration(c, holding);
    return c.body(null, 204);
  }

  return app;
}

function pathOf({ processId }: { processId: string }): string {
  return `/processes/${encodeURIComponent(processId)}`;
}
