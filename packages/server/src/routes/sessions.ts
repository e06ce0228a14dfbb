import {
  Continuity,
  CreateSession,
  Process,
  Session,
  SessionCommandState,
  SessionExecRequest,
  SessionList,
  SessionProcessRequest,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, checkedByHandler, newApp } from "../app.ts";
import { askedBy, startHeaders, workHeaders } from "../http/asked.ts";
import { bodyOf } from "../http/body.ts";
import { generationOf } from "../http/describe.ts";
import { withKey } from "../http/idempotency.ts";
import { ask, askFor, tell } from "../http/proxy.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const bySession = byId.extend({ sessionId: z.string() });
const at = "/sandboxes/{id}/sessions/{sessionId}";
const SessionAnswer = SessionCommandState.and(
  z.object({ generation: z.number().int(), continuity: Continuity }),
);

const create = createRoute({
  operationId: "createSession",
  method: "post",
  path: "/sandboxes/{id}/sessions",
  summary: "Get or create a persistent shell; wakes the sandbox",
  request: { params: byId, headers: workHeaders, ...jsonBody(CreateSession) },
  responses: { 200: answer("it was there", Session), 201: answer("it was created", Session), ...refusals },
});

const list = createRoute({
  operationId: "listSessions",
  method: "get",
  path: "/sandboxes/{id}/sessions",
  summary: "Sessions, awake and asleep",
  request: { params: byId },
  responses: { 200: answer("all of them", SessionList), ...refusals },
});

const get = createRoute({
  operationId: "getSession",
  method: "get",
  path: at,
  summary: "One session: its shell, and what runs and waits in it",
  request: { params: bySession },
  responses: { 200: answer("the session", Session), ...refusals },
});

const remove = createRoute({
  operationId: "deleteSession",
  method: "delete",
  path: at,
  summary: "End its shell and forget its state; wakes the sandbox",
  request: { params: bySession, headers: workHeaders },
  responses: { 204: { description: "ended" }, ...refusals },
});

const exec = createRoute({
  operationId: "execInSession",
  method: "post",
  path: `${at}/exec`,
  summary: "Run a command in the session's shell; wakes the sandbox and the session",
  request: { params: bySession, headers: startHeaders, ...jsonBody(SessionExecRequest) },
  responses: { 200: answer("what became of it", SessionAnswer), ...refusals },
});

const startProcess = createRoute({
  operationId: "startProcessInSession",
  method: "post",
  path: `${at}/processes`,
  summary: "Start a process from a snapshot of the session's state",
  request: { params: bySession, headers: startHeaders, ...jsonBody(SessionProcessRequest) },
  responses: { 201: answer("it runs", Process), ...refusals },
});

export function sessionRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    const body = JSON.stringify(c.req.valid("json"));
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    const reply = await askFor(c, inUse, { method: "POST", path: "/sessions", body }, Session);
    return c.json(reply.body, reply.status === 201 ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: "/sessions" }, SessionList), 200);
  });

  app.openapi(get, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: pathOf(c.req.valid("param")) }, Session), 200);
  });

  app.openapi(remove, async (c) => {
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    await tell(c, inUse, { method: "DELETE", path: pathOf(c.req.valid("param")) });
    return c.body(null, 204);
  });

  app.openapi(checkedByHandler(app, exec), async (c) => {
    const body = JSON.stringify(withKey(c, "commandId", await bodyOf(c, SessionExecRequest)));
    const inUse = await sandboxes.use(c.req.param("id"), askedBy(c));
    const path = `${pathOf(c.req.param())}/exec`;
    const call = { method: "POST", path, body } as const;
    const { body: state, holding } = await askFor(c, inUse, call, SessionCommandState);
    c.var.operation.ran(state);
    return c.json({ ...state, ...generationOf(c, holding.sandbox) }, 200);
  });

  app.openapi(startProcess, async (c) => {
    const body = JSON.stringify(withKey(c, "processId", c.req.valid("json")));
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    const path = `${pathOf(c.req.valid("param"))}/processes`;
    return c.json(await ask(c, inUse, { method: "POST", path, body }, Process), 201);
  });

  return app;
}

function pathOf({ sessionId }: { sessionId: string }): string {
  return `/sessions/${encodeURIComponent(sessionId)}`;
}
