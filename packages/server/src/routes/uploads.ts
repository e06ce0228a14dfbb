import { FileInfo, Upload } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppDeps, type AppEnv, newApp } from "../app.ts";
import { askedBy, workHeaders } from "../http/asked.ts";
import { ask, queryOf, repeatable, tell, touched } from "../http/proxy.ts";
import { bytes, conditionsOf, flag, mode, parents, where, writeHeaders } from "./file-shapes.ts";
import { answer, byId, refusals } from "./shared.ts";

const byUpload = byId.extend({ uploadId: z.string() });
const at = "/sandboxes/{id}/files/uploads/{uploadId}";
const state = { 200: answer("how far it is", Upload), ...refusals };

const begin = createRoute({
  operationId: "beginUpload",
  method: "post",
  path: "/sandboxes/{id}/files/uploads",
  summary: "Begin a large file that comes in parts; the same id goes on with the same upload",
  request: {
    params: byId,
    query: where.extend({ uploadId: z.string().describe("chosen by the caller"), mode, parents }),
    headers: workHeaders,
  },
  responses: { 201: answer("it is begun, or goes on", Upload), ...refusals },
});

const find = createRoute({
  operationId: "findUpload",
  method: "get",
  path: at,
  summary: "How many bytes have arrived",
  request: { params: byUpload, headers: workHeaders },
  responses: state,
});

const append = createRoute({
  operationId: "appendUpload",
  method: "put",
  path: at,
  summary: "Add a part; what arrives of it stays",
  request: {
    params: byUpload,
    query: z.object({ offset: z.coerce.number().int().min(0).describe("as many as have arrived") }),
    headers: workHeaders,
    body: { content: { "application/octet-stream": bytes } },
  },
  responses: state,
});

const commit = createRoute({
  operationId: "commitUpload",
  method: "post",
  path: `${at}/commit`,
  summary: "Put the file in place, whole",
  request: {
    params: byUpload,
    query: z.object({
      sha256: z.string().optional().describe("refuse another content"),
      sync: flag("answer only when it is on the disk"),
    }),
    headers: writeHeaders,
  },
  responses: { 200: answer("in place", FileInfo), ...refusals },
});

const abort = createRoute({
  operationId: "abortUpload",
  method: "delete",
  path: at,
  summary: "Forget an upload, and what has arrived of it",
  request: { params: byUpload, headers: workHeaders },
  responses: { 204: { description: "forgotten" }, ...refusals },
});

export function uploadRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();
  const inUse = (c: Context<AppEnv>) => sandboxes.use(c.req.param("id") ?? "", askedBy(c));
  const path = (c: Context<AppEnv>, action = "") =>
    `/files/uploads/${encodeURIComponent(c.req.param("uploadId") ?? "")}${action}${queryOf(c)}`;

  app.openapi(begin, async (c) => {
    const call = { method: "POST", path: `/files/uploads${queryOf(c)}` } as const;
    return c.json(await ask(c, await inUse(c), call, Upload), 201);
  });
  app.openapi(find, async (c) =>
    c.json(await ask(c, await inUse(c), { method: "GET", path: path(c) }, Upload), 200),
  );
  app.openapi(append, async (c) => {
    const { body, isRepeatable } = await repeatable(c);
    const used = await inUse(c);
    const call = { method: "PUT", path: path(c), body, signal: c.req.raw.signal } as const;
    return c.json(await ask(c, isRepeatable ? used : await touched(used), call, Upload), 200);
  });
  app.openapi(commit, async (c) => {
    const call = { method: "POST", path: path(c, "/commit"), headers: conditionsOf(c) } as const;
    return c.json(await ask(c, await inUse(c), call, FileInfo), 200);
  });
  app.openapi(abort, async (c) => {
    await tell(c, await inUse(c), { method: "DELETE", path: path(c) });
    return c.body(null, 204);
  });
  return app;
}
