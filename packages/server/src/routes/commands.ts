import { CommandState, Continuity, ExecRequest, SessionCommandState } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { continuityHeaders, generationOf, rememberedBy, withGeneration } from "../http/describe.ts";
import { withKey } from "../http/idempotency.ts";
import { passOn } from "../http/proxy.ts";
import { answer, byId, jsonBody, LogQuery, logAnswer, refusals } from "./shared.ts";

/** A session's command has more to tell. */
const AnyCommand = z.union([SessionCommandState, CommandState]);
const CommandAnswer = AnyCommand.and(z.object({ generation: z.number().int(), continuity: Continuity }));
const byCommand = byId.extend({ commandId: z.string() });

const exec = createRoute({
  method: "post",
  path: "/sandboxes/{id}/exec",
  summary: "Run one command to completion; wakes the sandbox",
  request: { params: byId, headers: continuityHeaders, ...jsonBody(ExecRequest) },
  responses: { 200: answer("what became of it", CommandAnswer), ...refusals },
});

const get = createRoute({
  method: "get",
  path: "/sandboxes/{id}/commands/{commandId}",
  summary: "What became of a command",
  request: { params: byCommand },
  responses: { 200: answer("its state", CommandAnswer), ...refusals },
});

const logs = createRoute({
  method: "get",
  path: "/sandboxes/{id}/commands/{commandId}/logs",
  summary: "A command's output from an offset",
  request: { params: byCommand, query: LogQuery },
  responses: { 200: logAnswer, ...refusals },
});

const cancel = createRoute({
  method: "post",
  path: "/sandboxes/{id}/commands/{commandId}/cancel",
  summary: "End a command and everything it started",
  request: { params: byCommand },
  responses: { 200: answer("its state afterwards", CommandAnswer), ...refusals },
});

export function commandRoutes({ sandboxes }: AppDeps): App {
  const app = newApp();

  app.openapi(exec, async (c) => {
    c.env.mayBeSilent?.();
    const { holding, link } = await sandboxes.use(c.req.valid("param").id, rememberedBy(c));
    const body = JSON.stringify(withKey(c, "commandId", c.req.valid("json")));
    const state = await link.json({ method: "POST", path: "/exec", body }, CommandState);
    withGeneration(c, holding);
    return c.json({ ...state, ...generationOf(c, holding) }, 200);
  });

  app.openapi(get, async (c) => {
    const { id, commandId } = c.req.valid("param");
    const { holding, link } = await sandboxes.look(id);
    const path = `/commands/${encodeURIComponent(commandId)}${new URL(c.req.url).search}`;
    const state = await link.json({ method: "GET", path }, AnyCommand);
    withGeneration(c, holding);
    return c.json({ ...state, ...generationOf(c, holding) }, 200);
  });

  app.openapi(logs, async (c) => {
    const { id, commandId } = c.req.valid("param");
    return passOn(c, await sandboxes.look(id), `/commands/${encodeURIComponent(commandId)}/logs`);
  });

  app.openapi(cancel, async (c) => {
    c.env.mayBeSilent?.();
    const { id, commandId } = c.req.valid("param");
    const { holding, link } = await sandboxes.look(id);
    const path = `/commands/${encodeURIComponent(commandId)}/cancel`;
    const state = await link.json({ method: "POST", path }, AnyCommand);
    withGeneration(c, holding);
    return c.json({ ...state, ...generationOf(c, holding) }, 200);
  });

  return app;
}
