import { BeginTurn, Turn } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, workHeaders } from "../http/asked.ts";
import { iso, withGeneration } from "../http/describe.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const begin = createRoute({
  operationId: "beginTurn",
  method: "post",
  path: "/sandboxes/{id}/turns",
  summary: "Begin a turn, which holds off the reaper; the same id again gives the same turn",
  request: { params: byId, headers: workHeaders, ...jsonBody(BeginTurn) },
  responses: { 201: answer("it is open", Turn), ...refusals },
});

const end = createRoute({
  operationId: "endTurn",
  method: "post",
  path: "/sandboxes/{id}/turns/{turnId}/end",
  summary: "End a turn; the last one's end removes a sandbox that is not persistent",
  request: { params: byId.extend({ turnId: z.string() }) },
  responses: { 200: answer("it has ended; again gives the same answer", Turn), ...refusals },
});

export function turnRoutes({ lifecycle: { turns } }: AppDeps): App {
  const app = newApp();

  app.openapi(begin, async (c) => {
    // The turn that the call itself may be a part of is not the one it begins.
    const { turnId: _within, ...asked } = askedBy(c);
    const { turnId } = c.req.valid("json");
    const { holding, turn } = await turns.begin(c.req.valid("param").id, {
      ...asked,
      ...(turnId !== undefined && { turnId }),
    });
    withGeneration(c, holding);
    return c.json({ ...turn, startedAt: iso(turn.startedAt), expiresAt: iso(turn.expiresAt) }, 201);
  });

  app.openapi(end, async (c) => {
    const { id, turnId } = c.req.valid("param");
    const { holding, turn } = await turns.end(id, turnId);
    // It may have gone with its turn.
    if (holding !== undefined) withGeneration(c, holding);
    return c.json({ turnId, startedAt: iso(turn.startedAt), endedAt: iso(turn.endedAt) }, 200);
  });

  return app;
}
