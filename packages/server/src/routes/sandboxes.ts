import {
  CreateSandbox,
  EnsureSandbox,
  HoldfastError,
  ListQuery,
  Sandbox,
  SandboxList,
  SandboxName,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, holdHeaders, workHeaders } from "../http/asked.ts";
import { describe, withGeneration } from "../http/describe.ts";
import { answer, byId, jsonBody, QueueQuery, refusals } from "./shared.ts";

const WaitFlag = z.object({ wait: z.enum(["true", "false"]).default("true") });
const Deleting = z.object({
  state: z.literal("deleting"),
  retryAfter: z.number().describe("seconds until it is worth asking again"),
});

const create = createRoute({
  operationId: "createSandbox",
  method: "post",
  path: "/sandboxes",
  summary: "Create a sandbox; answers when a first command would run",
  request: {
    ...jsonBody(CreateSandbox),
    query: WaitFlag.extend(QueueQuery.shape),
    headers: z.object({
      // As long as an index of PostgreSQL takes, and more than any id.
      "idempotency-key": z.string().min(1).max(255).optional().describe("the same key: the same sandbox"),
    }),
  },
  responses: {
    201: answer("it runs", Sandbox),
    202: answer("it is being created (wait=false)", Sandbox),
    ...refusals,
  },
});

const ensure = createRoute({
  operationId: "ensureSandbox",
  method: "put",
  path: "/sandboxes/by-name/{name}",
  summary: "Get or create by name; single-flight",
  request: {
    ...jsonBody(EnsureSandbox),
    params: z.object({ name: SandboxName }),
    query: QueueQuery,
    headers: workHeaders,
  },
  responses: { 200: answer("it was there", Sandbox), 201: answer("it was created", Sandbox), ...refusals },
});

const list = createRoute({
  operationId: "listSandboxes",
  method: "get",
  path: "/sandboxes",
  summary: "List sandboxes in order of creation",
  request: { query: ListQuery },
  responses: { 200: answer("a page", SandboxList), ...refusals },
});

const get = createRoute({
  operationId: "getSandbox",
  method: "get",
  path: "/sandboxes/{id}",
  summary: "One sandbox; never wakes it",
  request: { params: byId },
  responses: { 200: answer("the sandbox", Sandbox), ...refusals },
});

const remove = createRoute({
  operationId: "deleteSandbox",
  method: "delete",
  path: "/sandboxes/{id}",
  summary: "End everything of it; done only on evidence",
  request: {
    params: byId,
    headers: holdHeaders,
    query: z.object({
      force: z.enum(["true", "false"]).default("false"),
      wait: z.coerce.number().min(0).max(600).default(0).describe("seconds to wait for the evidence"),
    }),
  },
  responses: { 202: answer("not yet proved gone", Deleting), 204: { description: "gone" }, ...refusals },
});

export function sandboxRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    const { wait, queue } = c.req.valid("query");
    const { "idempotency-key": idempotencyKey } = c.req.valid("header");
    if (queue > 0 || wait === "true") c.env.mayBeSilent?.();
    const made = await sandboxes.create(c.req.valid("json"), {
      queueMs: queue * 1000,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
    const holding = wait === "false" ? await sandboxes.begin(made) : (await sandboxes.wake(made)).holding;
    withGeneration(c, holding);
    return c.json(describe(holding), wait === "false" ? 202 : 201);
  });

  app.openapi(ensure, async (c) => {
    c.env.mayBeSilent?.();
    const queueMs = c.req.valid("query").queue * 1000;
    const asked = { ...askedBy(c), queueMs };
    const { name } = c.req.valid("param");
    const { holding, created } = await sandboxes.ensure(name, c.req.valid("json"), { queueMs });
    const live = (await sandboxes.use(holding.sandbox.id, asked)).holding;
    withGeneration(c, live);
    return c.json(describe(live, asked.generation), created ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const { state, label, limit, cursor } = c.req.valid("query");
    const { holdings, next } = await sandboxes.list({
      limit,
      ...(state !== undefined && { states: [state] }),
      ...(label !== undefined && { label: parseLabel(label) }),
      ...(cursor !== undefined && { after: parseCursor(cursor) }),
    });
    const page = { sandboxes: holdings.map((holding) => describe(holding)) };
    return c.json(next === undefined ? page : { ...page, nextCursor: String(next) }, 200);
  });

  app.openapi(get, async (c) => {
    const holding = await sandboxes.get(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(describe(holding, askedBy(c).generation), 200);
  });

  app.openapi(remove, async (c) => {
    const { force, wait } = c.req.valid("query");
    if (wait > 0) c.env.mayBeSilent?.();
    const mode = force === "true" ? "force" : "graceful";
    const { id } = c.req.valid("param");
    const state = await sandboxes.delete(id, { ...askedBy(c), mode, waitMs: wait * 1000 });
    if (state === "gone") return c.body(null, 204);
    const retryAfter = await secondsToNextLook(id);
    c.header("Retry-After", String(retryAfter));
    return c.json({ state, retryAfter }, 202);
  });

  /** When the next attempt to finish a deletion is made. */
  async function secondsToNextLook(id: string): Promise<number> {
    const holding = await sandboxes.get(id).catch(unlessGone);
    const at = holding?.lease?.nextAttemptAt ?? holding?.sandbox.diskRetryAt ?? 0;
    return Math.max(1, Math.ceil((at - (holding?.readAt ?? 0)) / 1000));
  }

  return app;
}

/** It went while we looked. */
function unlessGone(error: unknown): undefined {
  if (!(error instanceof HoldfastError && error.code === "gone")) throw error;
}

function parseCursor(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new HoldfastError("invalid_argument", "the cursor is none that a page of this list has given", {
    hint: "send the nextCursor of the page before as it is, or none to begin anew",
    started: "no",
  });
}

function parseLabel(text: string): { key: string; value?: string } {
  const at = text.indexOf("=");
  return at < 0 ? { key: text } : { key: text.slice(0, at), value: text.slice(at + 1) };
}
