import { CloneRequest, CloneState, DiffQuery, GitDiff, GitStatus, StatusQuery } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, startHeaders } from "../http/asked.ts";
import { withKey } from "../http/idempotency.ts";
import { ask, queryOf } from "../http/proxy.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const clone = createRoute({
  operationId: "gitClone",
  method: "post",
  path: "/sandboxes/{id}/git/clone",
  summary: "Clone a repository, whole or not at all; wakes the sandbox",
  description:
    "Answers when it is in its place. Its progress is the log of the command `commandId`, which can be followed and " +
    "cancelled like any other. Credentials are used for this one clone and are kept nowhere.",
  request: { params: byId, headers: startHeaders, ...jsonBody(CloneRequest) },
  responses: { 200: answer("what was cloned, or that it still runs", CloneState), ...refusals },
});

const status = createRoute({
  operationId: "gitStatus",
  method: "get",
  path: "/sandboxes/{id}/git/status",
  summary: "What is changed in a repository; wakes nothing",
  request: { params: byId, query: StatusQuery },
  responses: { 200: answer("its branch and its files", GitStatus), ...refusals },
});

const diff = createRoute({
  operationId: "gitDiff",
  method: "get",
  path: "/sandboxes/{id}/git/diff",
  summary: "How tracked files differ from the index, from what is committed, or from a commit; wakes nothing",
  request: { params: byId, query: DiffQuery },
  responses: { 200: answer("file by file, with patches", GitDiff), ...refusals },
});

export function gitRoutes({ lifecycle: { sandboxes } }: AppDeps): App {
  const app = newApp();

  app.openapi(clone, async (c) => {
    const body = JSON.stringify(withKey(c, "commandId", c.req.valid("json")));
    const inUse = await sandboxes.use(c.req.valid("param").id, askedBy(c));
    return c.json(await ask(c, inUse, { method: "POST", path: "/git/clone", body }, CloneState), 200);
  });

  app.openapi(status, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: `/git/status${queryOf(c)}` }, GitStatus), 200);
  });

  app.openapi(diff, async (c) => {
    const inUse = await sandboxes.look(c.req.valid("param").id);
    return c.json(await ask(c, inUse, { method: "GET", path: `/git/diff${queryOf(c)}` }, GitDiff), 200);
  });

  return app;
}
