import { isSpare, type Lease } from "@holdfast/core";
import {
  AbandonRequest,
  type LeaseInfo,
  LeaseList,
  ProviderList,
  Sandbox,
  SweepReport,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { describe, iso, withGeneration } from "../http/describe.ts";
import { answer, jsonBody, refusals } from "./shared.ts";

const providers = createRoute({
  operationId: "listProviders",
  method: "get",
  path: "/providers",
  summary: "Every backend: whether it can be reached, what it can do, what room it has",
  responses: { 200: answer("all of them", ProviderList), ...refusals },
});

const leases = createRoute({
  operationId: "listLeases",
  method: "get",
  path: "/leases",
  summary: "The record of every instance that exists, may exist, or lately did",
  request: {
    query: z.object({
      limit: z.coerce.number().int().min(1).max(1000).default(100),
      cursor: z.string().optional(),
    }),
  },
  responses: { 200: answer("a page", LeaseList), ...refusals },
});

const sweep = createRoute({
  operationId: "sweep",
  method: "post",
  path: "/admin/sweep",
  summary: "Compare what the backends hold with what should be there, now",
  request: { query: z.object({ dryRun: z.enum(["true", "false"]).default("false") }) },
  responses: { 200: answer("what was found, and what was or would be done", SweepReport), ...refusals },
});

const abandon = createRoute({
  operationId: "abandonSandbox",
  method: "post",
  path: "/admin/abandon",
  summary: "Forget an instance without evidence that it is gone; it is recorded, and hunted on",
  request: jsonBody(AbandonRequest),
  responses: { 200: answer("the sandbox, free for another instance", Sandbox), ...refusals },
});

const rotateToken = createRoute({
  operationId: "rotateToken",
  method: "post",
  path: "/admin/token/rotate",
  summary: "Make another API token; the one that this call carries is worth nothing afterwards",
  responses: { 200: answer("the new one", z.object({ token: z.string() })), ...refusals },
});

const SignInCode = z.object({ code: z.string(), expiresAt: z.string() });
type SignInCode = z.infer<typeof SignInCode>;

const signInCode = createRoute({
  operationId: "makeSignInCode",
  method: "post",
  path: "/admin/sign-in-code",
  summary: "Make a code that lets a browser into the dashboard, once: open `/#code=CODE`",
  responses: { 200: answer("the code, and until when it is good", SignInCode), ...refusals },
});

/** What whoever runs the server looks at and does, beyond any single sandbox. */
export function operatorRoutes(deps: AppDeps & { signInCode: () => SignInCode }): App {
  const { lifecycle, rotateToken: newToken } = deps;
  const app = newApp();

  app.openapi(providers, async (c) => c.json({ providers: await lifecycle.providers() }, 200));

  app.openapi(leases, async (c) => {
    const { limit, cursor } = c.req.valid("query");
    const page = await lifecycle.leases({ limit, ...(cursor !== undefined && { after: cursor }) });
    const last = page.length < limit ? undefined : page.at(-1);
    const more = last === undefined ? {} : { nextCursor: last.instanceId };
    return c.json({ leases: page.map(shown), ...more }, 200);
  });

  app.openapi(sweep, async (c) => {
    c.env.mayBeSilent?.();
    return c.json(await lifecycle.sweep({ dryRun: c.req.valid("query").dryRun === "true" }), 200);
  });

  app.openapi(abandon, async (c) => {
    const { sandbox, reason } = c.req.valid("json");
    const holding = await lifecycle.sandboxes.abandon(sandbox, { reason });
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(signInCode, (c) => c.json(deps.signInCode(), 200));

  app.openapi(rotateToken, (c) => c.json({ token: newToken() }, 200));

  return app;
}

/** Field by field, so that a secret which a lease has, or gets one day, is never among them. */
function shown(lease: Lease): LeaseInfo {
  const { instanceId, sandboxId, provider, generation, fence, origin, phase, attempts } = lease;
  const { admittedAt, stopReason, nextAttemptAt, lastError, evidence } = lease;
  return {
    instanceId,
    sandboxId,
    provider,
    generation,
    fence,
    origin,
    ...(isSpare(lease) && { spare: true }),
    phase,
    createdAt: iso(lease.createdAt),
    ...(admittedAt !== null && { admittedAt: iso(admittedAt) }),
    ...(stopReason !== null && { stopReason }),
    attempts,
    ...(nextAttemptAt !== null && { nextAttemptAt: iso(nextAttemptAt) }),
    ...(lastError !== null && { lastError }),
    ...(evidence !== null && { evidence: { ...evidence, at: iso(evidence.at) } }),
  };
}
