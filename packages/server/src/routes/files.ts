import { FileInfo, FileList, MAX_LIST_LIMIT, TarResult } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppDeps, type AppEnv, newApp } from "../app.ts";
import { askedBy, workHeaders } from "../http/asked.ts";
import { ask, askFor, passThrough, queryOf, repeatable, tell, touched } from "../http/proxy.ts";
import { bytes, conditionsOf, flag, mode, parents, where, writeHeaders } from "./file-shapes.ts";
import { answer, byId, refusals } from "./shared.ts";

const hash = z.literal("sha256").optional().describe("also the hash of files' content");

const readHeaders = workHeaders.extend({
  range: z.string().optional().describe("one range of bytes, such as bytes=0-1023"),
  "if-match": z.string().optional().describe("refuse with precondition_failed if its etag is another"),
});
const read = createRoute({
  operationId: "readFile",
  method: "get",
  path: "/sandboxes/{id}/files",
  summary: "Read a file, or a range of it; wakes the sandbox",
  request: { params: byId, query: where, headers: readHeaders },
  responses: {
    200: { description: "its bytes", content: { "application/octet-stream": bytes } },
    206: { description: "the range", content: { "application/octet-stream": bytes } },
    ...refusals,
  },
});

const write = createRoute({
  operationId: "writeFile",
  method: "put",
  path: "/sandboxes/{id}/files",
  summary: "Write a file of any size, whole or not at all; its mode and owner are kept",
  request: {
    params: byId,
    query: where.extend({
      mode,
      parents,
      sync: flag("answer only when it is on the disk"),
    }),
    headers: writeHeaders,
    body: { content: { "application/octet-stream": bytes } },
  },
  responses: { 200: answer("replaced", FileInfo), 201: answer("new", FileInfo), ...refusals },
});

const remove = createRoute({
  operationId: "deleteFile",
  method: "delete",
  path: "/sandboxes/{id}/files",
  summary: "Delete a file, a symlink, or an empty directory; with recursive, all that is in it",
  request: {
    params: byId,
    query: where.extend({ recursive: flag("with all it has") }),
    headers: workHeaders,
  },
  responses: { 204: { description: "deleted" }, ...refusals },
});

const stat = createRoute({
  operationId: "statFile",
  method: "get",
  path: "/sandboxes/{id}/files/stat",
  summary: "What a path is",
  request: {
    params: byId,
    query: where.extend({ follow: flag("of what a symlink leads to, not of the link"), hash }),
    headers: workHeaders,
  },
  responses: { 200: answer("what it is", FileInfo), ...refusals },
});

const list = createRoute({
  operationId: "listFiles",
  method: "get",
  path: "/sandboxes/{id}/files/list",
  summary: "What is below a directory, in pages; symlinks are told, not followed",
  request: {
    params: byId,
    query: where.extend({
      depth: z.coerce.number().int().min(1).max(1000).optional().describe("1, the default: no deeper"),
      limit: z.coerce.number().int().min(1).max(MAX_LIST_LIMIT).optional(),
      cursor: z.string().optional().describe("the last page's nextCursor"),
      hash,
    }),
    headers: workHeaders,
  },
  responses: { 200: answer("a page", FileList), ...refusals },
});

const mkdir = createRoute({
  operationId: "makeDirectory",
  method: "post",
  path: "/sandboxes/{id}/files/mkdir",
  summary: "Make a directory; with parents, one that is there already is fine",
  request: { params: byId, query: where.extend({ mode, parents }), headers: workHeaders },
  responses: { 201: answer("it is there", FileInfo), ...refusals },
});

const tarOut = createRoute({
  operationId: "readTar",
  method: "get",
  path: "/sandboxes/{id}/files/tar",
  summary: "A directory, or a file, as a tar archive",
  request: { params: byId, query: where, headers: workHeaders },
  responses: {
    200: { description: "the archive", content: { "application/x-tar": bytes } },
    ...refusals,
  },
});

const tarIn = createRoute({
  operationId: "writeTar",
  method: "put",
  path: "/sandboxes/{id}/files/tar",
  summary: "Unpack a tar archive, also gzipped, into a directory; a bad one changes nothing",
  request: {
    params: byId,
    query: where.extend({
      parents,
      maxBytes: z.coerce.number().int().min(0).optional().describe("of all files together; default 64 GiB"),
      maxEntries: z.coerce.number().int().min(0).optional().describe("default 1,000,000"),
    }),
    headers: workHeaders,
    body: { content: { "application/x-tar": bytes } },
  },
  responses: { 200: answer("unpacked", TarResult), ...refusals },
});

const move = createRoute({
  operationId: "moveFile",
  method: "post",
  path: "/sandboxes/{id}/files/move",
  summary: "Rename in one step; replaces nothing unless told so",
  request: {
    params: byId,
    query: z.object({
      from: z.string(),
      to: z.string(),
      root: where.shape.root,
      overwrite: flag("replace what is there"),
    }),
    headers: workHeaders,
  },
  responses: { 200: answer("moved", FileInfo), ...refusals },
});

export function fileRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();
  /** Every use of files is a use of the sandbox: it is woken if it sleeps. */
  const inUse = (c: Context<AppEnv>) => sandboxes.use(c.req.param("id") ?? "", askedBy(c));
  const path = (c: Context<AppEnv>, action = "") => `/files${action}${queryOf(c)}`;

  app.openapi(read, async (c) => passThrough(c, await inUse(c), { method: "GET", path: path(c) }));

  app.openapi(write, async (c) => {
    const { body, isRepeatable } = await repeatable(c);
    const used = await inUse(c);
    const call = {
      method: "PUT",
      path: path(c),
      body,
      headers: conditionsOf(c),
      signal: c.req.raw.signal,
    } as const;
    const awake = isRepeatable ? used : await touched(used);
    const { status, body: file } = await askFor(c, awake, call, FileInfo);
    c.header("ETag", `"${file.etag}"`);
    return c.json(file, status === 201 ? 201 : 200);
  });

  app.openapi(tarOut, async (c) => passThrough(c, await inUse(c), { method: "GET", path: path(c, "/tar") }));

  app.openapi(tarIn, async (c) => {
    const { body, isRepeatable } = await repeatable(c);
    const used = await inUse(c);
    const awake = isRepeatable ? used : await touched(used);
    const call = { method: "PUT", path: path(c, "/tar"), body, signal: c.req.raw.signal } as const;
    return c.json(await ask(c, awake, call, TarResult), 200);
  });

  app.openapi(remove, async (c) => {
    await tell(c, await inUse(c), { method: "DELETE", path: path(c) });
    return c.body(null, 204);
  });

  app.openapi(stat, async (c) =>
    c.json(await ask(c, await inUse(c), { method: "GET", path: path(c, "/stat") }, FileInfo), 200),
  );
  app.openapi(list, async (c) => {
    const call = { method: "GET", path: path(c, "/list"), signal: c.req.raw.signal } as const;
    return c.json(await ask(c, await inUse(c), call, FileList), 200);
  });
  app.openapi(mkdir, async (c) =>
    c.json(await ask(c, await inUse(c), { method: "POST", path: path(c, "/mkdir") }, FileInfo), 201),
  );
  app.openapi(move, async (c) =>
    c.json(await ask(c, await inUse(c), { method: "POST", path: path(c, "/move") }, FileInfo), 200),
  );
  return app;
}
