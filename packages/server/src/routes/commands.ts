import { CommandState, Continuity, ExecRequest, SessionCommandState } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, checkedByHandler, newApp } from "../app.ts";
import { askedBy, holdHeaders, startHeaders } from "../http/asked.ts";
import { bodyOf } from "../http/body.ts";
import { generationOf } from "../http/describe.ts";
import { withKey } from "../http/idempotency.ts";
import { askFor, passOn, queryOf } from "../http/proxy.ts";
import { answer, byId, jsonBody, LogQuery, logAnswer, refusals } from "./shared.ts";

/** A session's command has more to tell. */
const AnyCommand = z.union([SessionCommandState, CommandState]);
const CommandAnswer = AnyCommand.and(z.object({ generation: z.number().int(), continuity: Continuity }));
const byCommand = byId.extend({ commandId: z.string() });

const exec = createRoute({
  operationId: "exec",
  method: "post",
  path: "/sandboxes/{id}/exec",
  summary: "Run one command to completion; wakes the sandbox",
  request: { params: byId, headers: startHeaders, ...jsonBody(ExecRequest) },
  responses: { 200: answer("what became of it", CommandAnswer), ...refusals },
});

const get = createRoute({
  operationId: "getCommand",
  method: "get",
  path: "/sandboxes/{id}/commands/{commandId}",
  summary: "What became of a command",
  request: { params: byCommand },
  responses: { 200: answer("its state", CommandAnswer), ...refusals },
});

const logs = createRoute({
  operationId: "readCommandLog",
  method: "get",
  path: "/sandboxes/{id}/commands/{commandId}/logs",
  summary: "A command's output from an offset",
  request: { params: byCommand, query: LogQuery },
  responses: { 200: logAnswer, ...refusals },
});

const cancel = createRoute({
  operationId: "cancelCommand",
  method: "post",
  path: "/sandboxes/{id}/commands/{commandId}/cancel",
  summary: "End a command and everything it started",
  request: { params: byCommand, headers: holdHeaders },
  responses: { 200: answer("its state afterwards", CommandAnswer), ...refusals },
});

export function commandRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(checkedByHandler(app, exec), async (c) => {
    const body = JSON.stringify(withKey(c, "commandId", await bodyOf(c, ExecRequest)));
    const inUse = await sandboxes.use(c.req.param("id"), askedBy(c));
    const call = { method: "POST", path: "/exec", body } as const;
    const { body: state, holding } = await askFor(c, inUse, call, CommandState);
    c.var.operation.ran(state);
    return c.json({ ...state, ...generationOf(c, holding.sandbox) }, 200);
  });

  app.openapi(get, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    const path = pathOf(c.req.valid("param")) + queryOf(c);
    const { body: state, holding } = await askFor(c, inUse, { method: "GET", path }, AnyCommand);
    return c.json({ ...state, ...generationOf(c, holding.sandbox) }, 200);
  });

  app.openapi(logs, async (c) =>
    passOn(c, await sandboxes.look(c.req.valid("param").id), `${pathOf(c.req.valid("param"))}/logs`),
  );

  app.openapi(cancel, async (c) => {
    const inUse = await sandboxes.useRunning(c.req.valid("param").id, askedBy(c));
    const path = `${pathOf(c.req.valid("param"))}/cancel`;
    const { body: state, holding } = await askFor(c, inUse, { method: "POST", path }, AnyCommand);
    return c.json({ ...state, ...generationOf(c, holding.sandbox) }, 200);
  });

  return app;
}

function pathOf({ commandId }: { commandId: string }): string {
  return `/commands/${encodeURIComponent(commandId)}`;
}
