import { type Archive, type KnownSnapshot, sizeOf } from "@holdfast/core";
import {
  CreateSnapshot,
  ForkRequest,
  ForkResult,
  HoldfastError,
  ImportQuery,
  Snapshot,
  SnapshotList,
} from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, holdHeaders } from "../http/asked.ts";
import { describe, iso, withGeneration } from "../http/describe.ts";
import { neverHeldBack } from "../http/proxy.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const bySnapshot = z.object({ snapshotId: z.string().describe("a snapshot's id or name") });
const keyHeaders = holdHeaders.extend({
  "idempotency-key": z.string().min(1).max(200).optional().describe("the same key: the same result"),
});
const WaitQuery = z.object({ wait: z.enum(["true", "false"]).default("true") });
const Page = z.object({
  label: z.string().optional().describe("`key` or `key=value`"),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "is none that a page of this list has given")
    .optional(),
});

const create = createRoute({
  operationId: "createSnapshot",
  method: "post",
  path: "/sandboxes/{id}/snapshots",
  summary: "Copy a sandbox's files as they are at one moment; running or stopped, and without waking it",
  request: {
    params: byId,
    ...jsonBody(CreateSnapshot),
    headers: keyHeaders,
    query: WaitQuery,
  },
  responses: {
    201: answer("it is whole", Snapshot),
    202: answer("it is being made (wait=false)", Snapshot),
    ...refusals,
  },
});

const listOfSandbox = createRoute({
  operationId: "listSandboxSnapshots",
  method: "get",
  path: "/sandboxes/{id}/snapshots",
  summary: "The snapshots of one sandbox, also of one that is gone (by its id)",
  request: { params: byId, query: Page },
  responses: { 200: answer("a page", SnapshotList), ...refusals },
});

const list = createRoute({
  operationId: "listSnapshots",
  method: "get",
  path: "/snapshots",
  summary: "All snapshots, in order of creation",
  request: { query: Page },
  responses: { 200: answer("a page", SnapshotList), ...refusals },
});

const get = createRoute({
  operationId: "getSnapshot",
  method: "get",
  path: "/snapshots/{snapshotId}",
  summary: "One snapshot: what is in it, or how far it is",
  request: { params: bySnapshot },
  responses: { 200: answer("the snapshot", Snapshot), ...refusals },
});

const remove = createRoute({
  operationId: "deleteSnapshot",
  method: "delete",
  path: "/snapshots/{snapshotId}",
  summary: "Remove a snapshot, as soon as no sandbox is being made from it",
  request: { params: bySnapshot },
  responses: { 202: answer("it is going", Snapshot), 204: { description: "gone" }, ...refusals },
});

const exported = createRoute({
  operationId: "exportSnapshot",
  method: "get",
  path: "/snapshots/{snapshotId}/archive",
  summary: "A snapshot as one portable tar archive, its manifest first",
  request: { params: bySnapshot },
  responses: {
    200: {
      description: "the archive; one that breaks off has no end mark",
      content: { "application/x-tar": { schema: z.string().meta({ format: "binary" }) } },
    },
    ...refusals,
  },
});

const imported = createRoute({
  operationId: "importSnapshot",
  method: "post",
  path: "/snapshots/import",
  summary: "A snapshot from an archive that an export gave, of whichever provider",
  request: {
    query: ImportQuery,
    body: {
      required: true,
      content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } },
    },
  },
  responses: { 201: answer("it is whole", Snapshot), ...refusals },
});

const fork = createRoute({
  operationId: "forkSandbox",
  method: "post",
  path: "/sandboxes/{id}/fork",
  summary: "New sandboxes with this one's files, spec and policy; all of them, or none",
  request: { params: byId, query: WaitQuery, ...jsonBody(ForkRequest), headers: keyHeaders },
  responses: {
    201: answer("they run", ForkResult),
    202: answer("they are being created (wait=false)", ForkResult),
    ...refusals,
  },
});

export function snapshotRoutes({ lifecycle: { sandboxes, snapshots, archives, forks } }: AppDeps): App {
  const app = newApp();

  app.openapi(create, async (c) => {
    c.env.mayBeSilent?.();
    const holding = await sandboxes.touch(c.req.valid("param").id, askedBy(c));
    const begun = await snapshots.begin(holding, c.req.valid("json"), { origin: "request", ...keyOf(c) });
    withGeneration(c, holding);
    if (c.req.valid("query").wait === "false") return c.json(shown(begun), 202);
    return c.json(shown(await snapshots.ready(begun.id)), 201);
  });

  app.openapi(listOfSandbox, async (c) => {
    const { id } = c.req.valid("param");
    const sandboxId = await sandboxes.get(id).then(
      (holding) => holding.sandboxId,
      (error) => unlessGone(error, id),
    );
    return c.json(await pageOf(c.req.valid("query"), { sandboxId }), 200);
  });

  app.openapi(list, async (c) => c.json(await pageOf(c.req.valid("query"), {}), 200));

  app.openapi(get, async (c) => c.json(shown(await snapshots.get(c.req.valid("param").snapshotId)), 200));

  app.openapi(remove, async (c) => {
    c.env.mayBeSilent?.();
    const { snapshotId } = c.req.valid("param");
    const { id } = await snapshots.get(snapshotId);
    if ((await snapshots.delete(id)) === "gone") return c.body(null, 204);
    return c.json(shown(await snapshots.get(id)), 202);
  });

  app.openapi(exported, async (c) => {
    c.env.mayBeSilent?.();
    const { row, archive } = await archives.export(c.req.valid("param").snapshotId, c.req.raw.signal);
    c.header("Content-Type", "application/x-tar");
    c.header("Content-Disposition", `attachment; filename="${row.name}.tar"`);
    neverHeldBack(c);
    return c.body(archive);
  });

  app.openapi(imported, async (c) => {
    c.env.mayBeSilent?.();
    const archive = c.req.raw.body as Archive | null;
    if (archive === null) throw noArchive();
    return c.json(shown(await archives.import(archive, c.req.valid("query"))), 201);
  });

  app.openapi(fork, async (c) => {
    c.env.mayBeSilent?.();
    const wait = c.req.valid("query").wait === "true";
    const options = { asked: askedBy(c), wait, ...keyOf(c) };
    const made = await forks.fork(c.req.valid("param").id, c.req.valid("json"), options);
    return c.json({ sandboxes: made.map((holding) => describe(holding)) }, wait ? 201 : 202);
  });

  async function pageOf(
    { label, limit, cursor }: z.infer<typeof Page>,
    filter: { sandboxId?: string },
  ): Promise<z.infer<typeof SnapshotList>> {
    const [key = "", value] = label?.split(/=(.*)/s) ?? [];
    const page = await snapshots.list({
      ...filter,
      limit,
      ...(label !== undefined && { label: value === undefined ? { key } : { key, value } }),
      ...(cursor !== undefined && { after: Number(cursor) }),
    });
    const more = page.next === undefined ? {} : { nextCursor: String(page.next) };
    return { snapshots: page.snapshots.map(shown), ...more };
  }

  return app;
}

/** The row as users see it. */
function shown(row: KnownSnapshot): Snapshot {
  const { id, name, phase, origin, provider, sandboxId, generation, spec, labels, usedBy } = row;
  return {
    ...{ snapshotId: id, name, state: phase, origin, provider, sandboxId, generation, spec, labels, usedBy },
    ...sizeOf(row),
    parts: [...row.parts],
    ...(row.checksum !== null && { checksum: row.checksum }),
    ...(phase === "making" && { copiedBytes: row.copiedBytes }),
    createdAt: iso(row.createdAt),
    ...(row.expiresAt !== null && { expiresAt: iso(row.expiresAt) }),
    ...(row.failure !== null && { failure: row.failure }),
  };
}

function keyOf(c: { req: { header(name: string): string | undefined } }): { idempotencyKey?: string } {
  const idempotencyKey = c.req.header("idempotency-key");
  return idempotencyKey === undefined ? {} : { idempotencyKey };
}

function noArchive(): HoldfastError {
  return new HoldfastError("invalid_argument", "there is no archive in the request's body", {
    hint: "send what GET /v1/snapshots/{snapshotId}/archive gave, as application/octet-stream",
    started: "no",
  });
}

/** Its snapshots outlive it. */
function unlessGone(error: unknown, id: string): string {
  if (error instanceof HoldfastError && (error.code === "gone" || error.code === "not_found")) return id;
  throw error;
}
