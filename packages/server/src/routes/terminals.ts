import {
  HoldfastError,
  Terminal,
  TerminalConnectQuery,
  TerminalCreated,
  TerminalList,
  TerminalRequest,
  TerminalSize,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, holdHeaders, workHeaders } from "../http/asked.ts";
import { ask, touched } from "../http/proxy.ts";
import { TerminalRelay } from "../terminal-relay.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const byTerminal = byId.extend({ terminalId: z.string() });
const one = { 200: answer("the terminal", Terminal), ...refusals };
const at = "/sandboxes/{id}/terminals/{terminalId}";

const create = createRoute({
  operationId: "openTerminal",
  method: "post",
  path: "/sandboxes/{id}/terminals",
  summary: "Get or create a terminal; wakes the sandbox",
  request: { params: byId, headers: workHeaders, ...jsonBody(TerminalRequest) },
  responses: {
    200: answer("it was there", TerminalCreated),
    201: answer("it was created", TerminalCreated),
    ...refusals,
  },
});

const list = createRoute({
  operationId: "listTerminals",
  method: "get",
  path: "/sandboxes/{id}/terminals",
  summary: "Terminals, running and ended",
  request: { params: byId },
  responses: { 200: answer("all of them", TerminalList), ...refusals },
});

const get = createRoute({
  operationId: "getTerminal",
  method: "get",
  path: at,
  summary: "One terminal, also for a while after its end",
  request: { params: byTerminal },
  responses: one,
});

const destroy = createRoute({
  operationId: "destroyTerminal",
  method: "delete",
  path: at,
  summary: "End its program and everything it started",
  request: { params: byTerminal, headers: holdHeaders },
  responses: one,
});

const resize = createRoute({
  operationId: "resizeTerminal",
  method: "post",
  path: `${at}/resize`,
  summary: "Change its size, for all who are attached",
  request: { params: byTerminal, headers: holdHeaders, ...jsonBody(TerminalSize) },
  responses: one,
});

const connect = createRoute({
  operationId: "connectTerminal",
  method: "get",
  path: `${at}/connect`,
  summary: "Bytes, by WebSocket; docs/terminals.md has the frames",
  request: { params: byTerminal, headers: holdHeaders, query: TerminalConnectQuery },
  responses: { 101: { description: "connected" }, ...refusals },
});

export function terminalRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    const body = JSON.stringify(c.req.valid("json"));
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    const made = await ask(c, inUse, { method: "POST", path: "/terminals", body }, TerminalCreated);
    return c.json(made, made.created ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: "/terminals" }, TerminalList), 200);
  });

  app.openapi(get, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: pathOf(c.req.valid("param")) }, Terminal), 200);
  });

  app.openapi(destroy, async (c) => {
    const inUse = await sandboxes.useRunning(c.req.valid("param").id, askedBy(c));
    return c.json(
      await ask(c, inUse, { method: "DELETE", path: pathOf(c.req.valid("param")) }, Terminal),
      200,
    );
  });

  app.openapi(resize, async (c) => {
    const inUse = await sandboxes.useRunning(c.req.valid("param").id, askedBy(c));
    const body = JSON.stringify(c.req.valid("json"));
    const path = `${pathOf(c.req.valid("param"))}/resize`;
    return c.json(await ask(c, inUse, { method: "POST", path, body }, Terminal), 200);
  });

  app.openapi(connect, async (c) => {
    const { id, terminalId } = c.req.valid("param");
    const isReadonly = c.req.valid("query").readonly === true;
    // A socket that was opened cannot be asked once more, so the keeper is touched before: then it does not rest.
    const inUse = isReadonly
      ? await sandboxes.look(id)
      : await touched(await sandboxes.useRunning(id, askedBy(c)));
    // An unknown terminal is refused in plain HTTP, where a client can read why.
    await inUse.link.json({ method: "GET", path: pathOf({ terminalId }) }, Terminal);
    const { operation } = c.var;
    const query = new URL(c.req.url).searchParams;
    const relay = new TerminalRelay(inUse, { terminalId, query, meter: operation });
    const upgraded = c.env.upgrade?.(relay);
    if (upgraded !== undefined) {
      operation.becameSocket();
      return upgraded;
    }
    throw new HoldfastError("invalid_argument", "a terminal is connected to by WebSocket", {
      hint: "open this address as a WebSocket, or use the SDK's `sandbox.terminal()`",
      // So that a client whose socket was refused can ask why, and tell this apart from a reason.
      details: { upgrade: "websocket" },
      started: "no",
    });
  });

  return app;
}

function pathOf({ terminalId }: { terminalId: string }): string {
  return `/terminals/${encodeURIComponent(terminalId)}`;
}
