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
import { type App, type AppDeps, newApp } from "../app.ts";
import { continuityHeaders, generationOf, rememberedBy, withGeneration } from "../http/describe.ts";
import { withKey } from "../http/idempotency.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const bySession = byId.extend({ sessionId: z.string() });
const at = "/sandboxes/{id}/sessions/{sessionId}";
const SessionAnswer = SessionCommandState.and(
  z.object({ generation: z.number().int(), continuity: Continuity }),
);

const create = createRoute({
  method: "post",
  path: "/sandboxes/{id}/sessions",
  summary: "Get or create a persistent shell; wakes the sandbox",
  request: { params: byId, headers: continuityHeaders, ...jsonBody(CreateSession) },
  responses: { 200: answer("it was there", Session), 201: answer("it was created", Session), ...refusals },
});

const list = createRoute({
  method: "get",
  path: "/sandboxes/{id}/sessions",
  summary: "Sessions, awake and asleep",
  request: { params: byId },
  responses: { 200: answer("all of them", SessionList), ...refusals },
});

const get = createRoute({
  method: "get",
  path: at,
  request: { params: bySession },
  responses: { 200: answer("the session", Session), ...refusals },
});

const remove = createRoute({
  method: "delete",
  path: at,
  summary: "End its shell and forget its state; wakes the sandbox",
  request: { params: bySession },
  responses: { 204: { description: "ended" }, ...refusals },
});

const exec = createRoute({
  method: "post",
  path: `${at}/exec`,
  summary: "Run a command in the session's shell; wakes the sandbox and the session",
  request: { params: bySession, headers: continuityHeaders, ...jsonBody(SessionExecRequest) },
  responses: { 200: answer("what became of it", SessionAnswer), ...refusals },
});

const startProcess = createRoute({
  method: "post",
  path: `${at}/processes`,
  summary: "Start a process from a snapshot of the session's state",
  request: { params: bySession, headers: continuityHeaders, ...jsonBody(SessionProcessRequest) },
  responses: { 201: answer("it runs", Process), ...refusals },
});

export function sessionRoutes({ sandboxes }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    c.env.mayBeSilent?.();
    const body = JSON.stringify(c.req.valid("json"));
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const reply = await link.reply({ method: "POST", path: "/sessions", body }, Session);
    withGeneration(c, holding);
    return c.json(reply.body, reply.status === 201 ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const { holding, link } = await sandboxes.look(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(await link.json({ method: "GET", path: "/sessions" }, SessionList), 200);
  });

  app.openapi(get, async (c) => {
    const { holding, link } = await sandboxes.look(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(await link.json({ method: "GET", path: pathOf(c.req.valid("param")) }, Session), 200);
  });

  app.openapi(remove, async (c) => {
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const reply = await link.send({ method: "DELETE", path: pathOf(c.req.valid("param")) });
    await reply.body?.cancel();
    withGeneration(c, holding);
    return c.body(null, 204);
  });

  app.openapi(exec, async (c) => {
    c.env.mayBeSilent?.();
    const body = JSON.stringify(withKey(c, "commandId", c.req.valid("json")));
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const path = `${pathOf(c.req.valid("param"))}/exec`;
    const state = await link.json({ method: "POST", path, body }, SessionCommandState);
    withGeneration(c, holding);
    return c.json({ ...state, ...generationOf(c, holding) }, 200);
  });

  app.openapi(startProcess, async (c) => {
    c.env.mayBeSilent?.();
    const body = JSON.stringify(withKey(c, "processId", c.req.valid("json")));
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const path = `${pathOf(c.req.valid("param"))}/processes`;
    const process = await link.json({ method: "POST", path, body }, Process);
    withGeneration(c, holding);
    return c.json(process, 201);
  });

  return app;
}

function pathOf({ sessionId }: { sessionId: string }): string {
  return `/sessions/${encodeURIComponent(sessionId)}`;
}
