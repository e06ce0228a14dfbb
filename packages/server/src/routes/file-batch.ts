import { BatchReadRequest, BatchResults, BatchRoot } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, workHeaders } from "../http/asked.ts";
import { ask, passThrough, queryOf, repeatable, touched } from "../http/proxy.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const bytes = { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } };
const FORM =
  "A batch has for each file a header, JSON behind its length in four bytes (big endian), and then the file's bytes.";

const apply = createRoute({
  operationId: "applyFileBatch",
  method: "post",
  path: "/sandboxes/{id}/files/batch",
  summary: "Write and delete many files and links, each only if it is what the sender takes it for",
  description:
    `${FORM} Headers are \`{ op: "write", path, expected, sizeBytes, mode }\`, \`{ op: "link", path, expected, target }\` ` +
    'for a symlink, and `{ op: "delete", path, expected }`; `path` is below the root, with no link on its way, and ' +
    "`expected` the etag that what is there must have, or `null` if there must be nothing. A deletion takes directories " +
    "along that are empty then.",
  request: { params: byId, query: BatchRoot, headers: workHeaders, body: { content: bytes } },
  responses: { 200: answer("what became of each", BatchResults), ...refusals },
});

const read = createRoute({
  operationId: "readFileBatch",
  method: "post",
  path: "/sandboxes/{id}/files/batch/read",
  summary: "Read many small files, or the hashes of files of any size",
  description: `${FORM} Headers are \`{ path, sizeBytes, etag, mode, sha256? }\` or \`{ path, sizeBytes: 0, error }\`.`,
  request: { params: byId, headers: workHeaders, ...jsonBody(BatchReadRequest) },
  responses: { 200: { description: "a batch", content: bytes }, ...refusals },
});

export function fileBatchRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(apply, async (c) => {
    const { body, isRepeatable } = await repeatable(c);
    const used = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    const call = {
      method: "POST",
      path: `/files/batch${queryOf(c)}`,
      body,
      signal: c.req.raw.signal,
    } as const;
    return c.json(await ask(c, isRepeatable ? used : await touched(used), call, BatchResults), 200);
  });

  app.openapi(read, async (c) => {
    const body = JSON.stringify(c.req.valid("json"));
    const used = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    return passThrough(c, used, { method: "POST", path: "/files/batch/read", body });
  });

  return app;
}
