import { stateOf } from "@holdfast/core";
import { Sandbox, UpdateSandbox, Why } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, holdHeaders, workHeaders } from "../http/asked.ts";
import { describe, withGeneration } from "../http/describe.ts";
import { touched } from "../http/proxy.ts";
import { isTokenOf, standingClaim } from "../lifecycle/claims.ts";
import { answer, byId, jsonBody, QueueQuery, refusals } from "./shared.ts";

const it = { 200: answer("the sandbox", Sandbox), ...refusals };

const update = createRoute({
  operationId: "updateSandbox",
  method: "patch",
  path: "/sandboxes/{id}",
  summary: "Change how long it lives, what ends it, and its labels",
  request: { params: byId, headers: holdHeaders, ...jsonBody(UpdateSandbox) },
  responses: it,
});

const start = createRoute({
  operationId: "startSandbox",
  method: "post",
  path: "/sandboxes/{id}/start",
  summary: "Make it run, also after failed launches",
  request: { params: byId, query: QueueQuery, headers: workHeaders },
  responses: it,
});

const stop = createRoute({
  operationId: "stopSandbox",
  method: "post",
  path: "/sandboxes/{id}/stop",
  summary: "End its processes and keep its files",
  request: { params: byId, headers: workHeaders },
  responses: it,
});

const pause = createRoute({
  operationId: "pauseSandbox",
  method: "post",
  path: "/sandboxes/{id}/pause",
  summary: "Freeze all its processes, where the provider can; the next use resumes it",
  request: { params: byId, headers: workHeaders },
  responses: it,
});

const resume = createRoute({
  operationId: "resumeSandbox",
  method: "post",
  path: "/sandboxes/{id}/resume",
  summary: "Let a paused sandbox run on; starts nothing",
  request: { params: byId, headers: workHeaders },
  responses: it,
});

const touch = createRoute({
  operationId: "touchSandbox",
  method: "post",
  path: "/sandboxes/{id}/touch",
  summary: "Count as a use and do nothing else; wakes nothing",
  request: { params: byId, headers: holdHeaders },
  responses: it,
});

const release = createRoute({
  operationId: "releaseSandbox",
  method: "post",
  path: "/sandboxes/{id}/release",
  summary: "End the caller's use: the turn and the claim that the call carries; what runs inside runs on",
  request: { params: byId, headers: holdHeaders },
  responses: it,
});

const why = createRoute({
  operationId: "explainSandbox",
  method: "get",
  path: "/sandboxes/{id}/why",
  summary: "Why it lives, when it will be reaped and what prevents that, why it last died",
  request: { params: byId },
  responses: { 200: answer("the reasons", Why), ...refusals },
});

export function lifecycleRoutes({ lifecycle }: AppDeps): App {
  const { sandboxes, turns, claims } = lifecycle;
  const app = newApp();

  app.openapi(update, async (c) => {
    const { id } = c.req.valid("param");
    const holding = await sandboxes.update(id, c.req.valid("json"), askedBy(c));
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(start, async (c) => {
    c.env.mayBeSilent?.();
    const asked = { ...askedBy(c), queueMs: c.req.valid("query").queue * 1000 };
    const { holding } = await sandboxes.start(c.req.valid("param").id, asked);
    withGeneration(c, holding);
    return c.json(describe(holding, asked.generation), 200);
  });

  app.openapi(stop, async (c) => {
    c.env.mayBeSilent?.();
    const holding = await sandboxes.stop(c.req.valid("param").id, askedBy(c));
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(pause, async (c) => {
    c.env.mayBeSilent?.();
    const holding = await sandboxes.pause(c.req.valid("param").id, askedBy(c));
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(resume, async (c) => {
    c.env.mayBeSilent?.();
    const holding = await sandboxes.resume(c.req.valid("param").id, askedBy(c));
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(touch, async (c) => {
    const { id } = c.req.valid("param");
    const isRunning = stateOf(await sandboxes.get(id)) === "running";
    const holding = isRunning
      ? (await touched(await sandboxes.use(id, askedBy(c)))).holding
      : await sandboxes.touch(id, askedBy(c));
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(release, async (c) => {
    const { id } = c.req.valid("param");
    const { turnId, claimToken } = askedBy(c);
    if (turnId !== undefined) await turns.end(id, turnId);
    const before = await sandboxes.get(id);
    const claim = standingClaim(before);
    const isHeld = claim !== undefined && claimToken !== undefined && isTokenOf(claim, claimToken);
    const holding = isHeld ? await claims.release(id, claim.claimId, { token: claimToken }) : before;
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(why, async (c) => {
    const { holding, why: reasons } = await lifecycle.why(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(reasons, 200);
  });

  return app;
}
