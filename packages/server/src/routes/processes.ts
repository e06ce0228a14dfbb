import { PortWait, Process, ProcessList, ProcessRequest, SignalRequest } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppDeps, type AppEnv, newApp } from "../app.ts";
import { askedBy, holdHeaders, startHeaders } from "../http/asked.ts";
import { withKey } from "../http/idempotency.ts";
import { ask, passOn, queryOf, repeatable, tell } from "../http/proxy.ts";
import { answer, byId, jsonBody, LogQuery, logAnswer, refusals } from "./shared.ts";

const byProcess = byId.extend({ processId: z.string() });
const one = { 200: answer("the process", Process), ...refusals };
const at = "/sandboxes/{id}/processes/{processId}";

const start = createRoute({
  operationId: "startProcess",
  method: "post",
  path: "/sandboxes/{id}/processes",
  summary: "Start a process that outlives this call; wakes the sandbox",
  request: { params: byId, headers: startHeaders, ...jsonBody(ProcessRequest) },
  responses: { 201: answer("it runs", Process), ...refusals },
});

const list = createRoute({
  operationId: "listProcesses",
  method: "get",
  path: "/sandboxes/{id}/processes",
  summary: "Processes, running and ended",
  request: { params: byId, query: z.object({ sessionId: z.string().optional() }) },
  responses: { 200: answer("all of them", ProcessList), ...refusals },
});

const get = createRoute({
  operationId: "getProcess",
  method: "get",
  path: at,
  summary: "One process: whether it runs, or how it ended",
  request: { params: byProcess },
  responses: one,
});

const logs = createRoute({
  operationId: "readProcessLog",
  method: "get",
  path: `${at}/logs`,
  summary: "Output from an offset: server-sent events, raw bytes, or frames",
  request: { params: byProcess, query: LogQuery },
  responses: { 200: logAnswer, ...refusals },
});

const stdin = createRoute({
  operationId: "writeStdin",
  method: "post",
  path: `${at}/stdin`,
  summary: "Write to its standard input; the body streams",
  request: {
    params: byProcess,
    headers: holdHeaders,
    body: { content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } } },
  },
  responses: { 204: { description: "written" }, ...refusals },
});

const closeStdin = createRoute({
  operationId: "closeStdin",
  method: "post",
  path: `${at}/stdin/close`,
  summary: "Close its standard input: the program reads the end",
  request: { params: byProcess, headers: holdHeaders },
  responses: { 204: { description: "closed" }, ...refusals },
});

const signal = createRoute({
  operationId: "signalProcess",
  method: "post",
  path: `${at}/signal`,
  summary: "Send the program itself one signal",
  request: { params: byProcess, headers: holdHeaders, ...jsonBody(SignalRequest) },
  responses: one,
});

const kill = createRoute({
  operationId: "killProcess",
  method: "post",
  path: `${at}/kill`,
  summary: "End the whole tree, verified",
  request: { params: byProcess, headers: holdHeaders },
  responses: one,
});

const timeout = z.object({ timeoutMs: z.coerce.number().int().min(0).optional() });

const wait = createRoute({
  operationId: "waitForProcess",
  method: "get",
  path: `${at}/wait`,
  summary: "Answer when it has ended, or after timeoutMs with its state; never kills",
  request: { params: byProcess, query: timeout },
  responses: one,
});

const waitForPort = createRoute({
  operationId: "waitForPort",
  method: "get",
  path: `${at}/wait-for-port`,
  summary: "Answer when this process tree listens on the port",
  request: { params: byProcess, query: timeout.extend({ port: z.coerce.number().int().min(1).max(65535) }) },
  responses: { 200: answer("whether it does", PortWait), ...refusals },
});

export function processRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(start, async (c) => {
    const body = JSON.stringify(withKey(c, "processId", c.req.valid("json")));
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    return c.json(await ask(c, inUse, { method: "POST", path: "/processes", body }, Process), 201);
  });

  app.openapi(list, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: `/processes${queryOf(c)}` }, ProcessList), 200);
  });

  app.openapi(get, async (c) => c.json(await askOne(c, { method: "GET", action: "" }), 200));
  app.openapi(kill, async (c) => c.json(await askOne(c, { method: "POST", action: "/kill" }), 200));
  app.openapi(wait, async (c) => c.json(await askOne(c, { method: "GET", action: "/wait" }), 200));

  app.openapi(signal, async (c) => {
    const body = JSON.stringify(c.req.valid("json"));
    return c.json(await askOne(c, { method: "POST", action: "/signal", body }), 200);
  });

  app.openapi(waitForPort, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    const path = `${pathOf(c.req.valid("param"))}/wait-for-port${queryOf(c)}`;
    return c.json(await ask(c, inUse, { method: "GET", path, signal: c.req.raw.signal }, PortWait), 200);
  });

  app.openapi(logs, async (c) =>
    passOn(c, await sandboxes.look(c.req.valid("param").id), `${pathOf(c.req.valid("param"))}/logs`),
  );

  app.openapi(stdin, async (c) => {
    const inUse = await sandboxes.useRunning(c.req.valid("param").id, askedBy(c));
    const path = `${pathOf(c.req.valid("param"))}/stdin`;
    const { body } = await repeatable(c);
    await tell(c, inUse, { method: "POST", path, body });
    return c.body(null, 204);
  });

  app.openapi(closeStdin, async (c) => {
    const inUse = await sandboxes.useRunning(c.req.valid("param").id, askedBy(c));
    await tell(c, inUse, { method: "POST", path: `${pathOf(c.req.valid("param"))}/stdin/close` });
    return c.body(null, 204);
  });

  /** What is done about one process, and answered with it. A caller that has left is not waited for. */
  async function askOne(
    c: Context<AppEnv>,
    { method, action, body }: { method: "GET" | "POST"; action: string; body?: string },
  ): Promise<Process> {
    const { id = "", processId = "" } = c.req.param();
    const path = pathOf({ processId }) + action + queryOf(c);
    const call = { method, path, signal: c.req.raw.signal, ...(body !== undefined && { body }) };
    const inUse = method === "GET" ? sandboxes.look(id) : sandboxes.useRunning(id, askedBy(c));
    return ask(c, await inUse, call, Process);
  }

  return app;
}

function pathOf({ processId }: { processId: string }): string {
  return `/processes/${encodeURIComponent(processId)}`;
}
