import type { Claim as ClaimRow } from "@holdfast/core";
import { Claim, ClaimRequest, HoldfastError, RenewClaim } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppDeps, type AppEnv, newApp } from "../app.ts";
import { askedBy, holdHeaders } from "../http/asked.ts";
import { iso, withGeneration } from "../http/describe.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const byClaim = byId.extend({ claimId: z.string() });
const at = "/sandboxes/{id}/claims/{claimId}";

const create = createRoute({
  operationId: "claimSandbox",
  method: "post",
  path: "/sandboxes/{id}/claims",
  summary: "Claim it for oneself alone; the answer has the token, which is told only here",
  request: { params: byId, ...jsonBody(ClaimRequest) },
  responses: { 201: answer("it is yours", Claim), ...refusals },
});

const renew = createRoute({
  operationId: "renewClaim",
  method: "post",
  path: `${at}/renew`,
  summary: "Hold a claim for longer; a lost one stays lost",
  request: { params: byClaim, headers: holdHeaders, ...jsonBody(RenewClaim) },
  responses: { 200: answer("it is still yours", Claim), ...refusals },
});

const release = createRoute({
  operationId: "releaseClaim",
  method: "delete",
  path: at,
  summary: "Give a claim back",
  request: { params: byClaim, headers: holdHeaders },
  responses: { 204: { description: "given back" }, ...refusals },
});

export function claimRoutes({ lifecycle: { claims } }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    const { holding, claim, token } = await claims.claim(c.req.valid("param").id, c.req.valid("json"));
    withGeneration(c, holding);
    return c.json({ ...shown(claim), token }, 201);
  });

  app.openapi(renew, async (c) => {
    const { id, claimId } = c.req.valid("param");
    const asked = { ...c.req.valid("json"), token: tokenOf(c) };
    const { holding, claim } = await claims.renew(id, claimId, asked);
    withGeneration(c, holding);
    return c.json(shown(claim), 200);
  });

  app.openapi(release, async (c) => {
    const { id, claimId } = c.req.valid("param");
    withGeneration(c, await claims.release(id, claimId, { token: tokenOf(c) }));
    return c.body(null, 204);
  });

  return app;
}

function shown({ claimId, holder, fence, expiresAt }: ClaimRow): Claim {
  return { claimId, holder, fence, expiresAt: iso(expiresAt) };
}

function tokenOf(c: Context<AppEnv>): string {
  const { claimToken } = askedBy(c);
  if (claimToken !== undefined) return claimToken;
  throw new HoldfastError("invalid_argument", "only the holder of a claim can do this", {
    hint: "send the token that the claim was made with as the header Holdfast-Claim",
    started: "no",
  });
}
