import {
  CreateSandbox,
  EnsureSandbox,
  ListQuery,
  Sandbox,
  SandboxEvent,
  SandboxList,
  SandboxName,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { describe, rememberedBy, withGeneration } from "../http/describe.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const WaitFlag = z.object({ wait: z.enum(["true", "false"]).default("true") });
const Deleting = z.object({ state: z.literal("deleting") });

const create = createRoute({
  method: "post",
  path: "/sandboxes",
  summary: "Create a sandbox; answers when a first command would run",
  request: { ...jsonBody(CreateSandbox), query: WaitFlag },
  responses: {
    201: answer("it runs", Sandbox),
    202: answer("it is being created (wait=false)", Sandbox),
    ...refusals,
  },
});

const ensure = createRoute({
  method: "put",
  path: "/sandboxes/by-name/{name}",
  summary: "Get or create by name; single-flight",
  request: { ...jsonBody(EnsureSandbox), params: z.object({ name: SandboxName }) },
  responses: { 200: answer("it was there", Sandbox), 201: answer("it was created", Sandbox), ...refusals },
});

const list = createRoute({
  method: "get",
  path: "/sandboxes",
  summary: "List sandboxes in order of creation",
  request: { query: ListQuery },
  responses: { 200: answer("a page", SandboxList), ...refusals },
});

const get = createRoute({
  method: "get",
  path: "/sandboxes/{id}",
  summary: "One sandbox; never wakes it",
  request: { params: byId },
  responses: { 200: answer("the sandbox", Sandbox), ...refusals },
});

const start = createRoute({
  method: "post",
  path: "/sandboxes/{id}/start",
  summary: "Make it run, also after failed launches",
  request: { params: byId },
  responses: { 200: answer("it runs", Sandbox), ...refusals },
});

const stop = createRoute({
  method: "post",
  path: "/sandboxes/{id}/stop",
  summary: "End its processes and keep its files",
  request: { params: byId },
  responses: { 200: answer("where it is now", Sandbox), ...refusals },
});

const remove = createRoute({
  method: "delete",
  path: "/sandboxes/{id}",
  summary: "End everything of it; done only on evidence",
  request: {
    params: byId,
    query: z.object({
      force: z.enum(["true", "false"]).default("false"),
      wait: z.coerce.number().min(0).max(600).default(0).describe("seconds to wait for the evidence"),
    }),
  },
  responses: { 202: answer("not yet proved gone", Deleting), 204: { description: "gone" }, ...refusals },
});

const events = createRoute({
  method: "get",
  path: "/sandboxes/{id}/events",
  summary: "Its timeline, with the cause of every death",
  request: {
    params: byId,
    query: z.object({
      since: z.coerce.number().int().min(0).default(0),
      limit: z.coerce.number().int().min(1).max(1000).default(1000),
    }),
  },
  responses: {
    200: answer("entries after `since`", z.object({ events: z.array(SandboxEvent) })),
    ...refusals,
  },
});

export function sandboxRoutes({ sandboxes }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    const idempotencyKey = c.req.header("idempotency-key");
    const made = await sandboxes.create(
      c.req.valid("json"),
      idempotencyKey === undefined ? {} : { idempotencyKey },
    );
    if (c.req.valid("query").wait === "false") {
      const begun = await sandboxes.begin(made);
      withGeneration(c, begun);
      return c.json(describe(begun), 202);
    }
    c.env.mayBeSilent?.();
    const { holding } = await sandboxes.wake(made);
    withGeneration(c, holding);
    return c.json(describe(holding), 201);
  });

  app.openapi(ensure, async (c) => {
    c.env.mayBeSilent?.();
    const { holding, created } = await sandboxes.ensure(c.req.valid("param").name, c.req.valid("json"));
    const live = (await sandboxes.use(holding.sandbox.id, rememberedBy(c))).holding;
    withGeneration(c, live);
    return c.json(describe(live, rememberedBy(c).generation), created ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const { state, label, limit, cursor } = c.req.valid("query");
    const { holdings, next } = await sandboxes.list({
      limit,
      ...(state !== undefined && { states: [state] }),
      ...(label !== undefined && { label: parseLabel(label) }),
      ...(cursor !== undefined && { after: Number(cursor) || 0 }),
    });
    const page = { sandboxes: holdings.map((holding) => describe(holding)) };
    return c.json(next === undefined ? page : { ...page, nextCursor: String(next) }, 200);
  });

  app.openapi(get, async (c) => {
    const holding = await sandboxes.get(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(describe(holding, rememberedBy(c).generation), 200);
  });

  app.openapi(start, async (c) => {
    c.env.mayBeSilent?.();
    const { holding } = await sandboxes.start(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(stop, async (c) => {
    c.env.mayBeSilent?.();
    const holding = await sandboxes.stop(c.req.valid("param").id);
    withGeneration(c, holding);
    return c.json(describe(holding), 200);
  });

  app.openapi(remove, async (c) => {
    const { force, wait } = c.req.valid("query");
    if (wait > 0) c.env.mayBeSilent?.();
    const mode = force === "true" ? "force" : "graceful";
    const state = await sandboxes.delete(c.req.valid("param").id, { mode, waitMs: wait * 1000 });
    if (state === "gone") return c.body(null, 204);
    c.header("Retry-After", "1");
    return c.json({ state }, 202);
  });

  app.openapi(events, async (c) => {
    const entries = await sandboxes.timeline(c.req.valid("param").id, c.req.valid("query"));
    const shown = entries.map(({ at, detail, ...entry }) => ({
      ...entry,
      at: new Date(at).toISOString(),
      detail: detail ?? {},
    }));
    return c.json({ events: shown }, 200);
  });

  return app;
}

function parseLabel(text: string): { key: string; value?: string } {
  const at = text.indexOf("=");
  return at < 0 ? { key: text } : { key: text.slice(0, at), value: text.slice(at + 1) };
}
