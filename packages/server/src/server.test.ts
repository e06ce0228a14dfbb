import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Clock } from "@holdfast/core";
import { SqliteStore } from "@holdfast/store";
import { FakeProvider } from "@holdfast/testkit";
import { type App, createApp } from "./app.ts";
import { Keepers } from "./keepers.ts";
import { silentLog } from "./log.ts";
import { Reconciler } from "./reconciler.ts";
import { Sandboxes } from "./sandboxes.ts";

/** A clock that stands still until a test moves it, or until somebody has nothing left but to sleep. */
let now = 1_000_000;
const clock: Clock = {
  now: () => now,
  async sleep(ms) {
    await Bun.sleep(20);
    now += ms;
  },
};

let provider: FakeProvider;
let store: SqliteStore;
let server: ReturnType<typeof startServer>;

beforeEach(() => {
  now = 1_000_000;
  provider = new FakeProvider();
  store = new SqliteStore({ path: ":memory:", newId: () => "hfinstallation", now: () => now });
  server = startServer();
});

afterEach(() => {
  server.crash();
  provider.close();
  store.close();
});

/** A server on the store and the provider that outlive it. `crash` leaves everything as it is. */
function startServer() {
  const closing = new AbortController();
  const keepers = new Keepers();
  const providers = new Map([["fake", provider]]);
  const parts = { store, providers, keepers, clock };
  const reconciler = new Reconciler({ ...parts, random: () => 0.5, log: silentLog, closing: closing.signal });
  const sandboxes = new Sandboxes({ ...parts, defaultProvider: "fake", reconciler });
  const app = createApp({
    sandboxes,
    log: silentLog,
    token: () => "token",
    notReady: () => undefined,
    maxRequests: 8,
  });
  const crash = () => {
    closing.abort();
    keepers.close();
  };
  return { app, reconciler, sandboxes, crash };
}

async function call(
  method: string,
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; app?: App } = {},
) {
  const response = await (options.app ?? server.app).request(
    path,
    {
      method,
      headers: { Authorization: "Bearer token", "Content-Type": "application/json", ...options.headers },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    },
    {},
  );
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

const create = (body: unknown = {}) => call("POST", "/v1/sandboxes", { body });
const codeOf = (answer: { body: { error?: { code: string } } }) => answer.body.error?.code;

test("create, exec, stop, come back, delete", async () => {
  const made = await create({ name: "one", labels: { a: "b" } });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    name: "one",
    state: "running",
    generation: 1,
    continuity: "fresh",
    labels: { a: "b" },
  });
  expect(made.headers.get("Holdfast-Generation")).toBe("1");

  const ran = await call("POST", "/v1/sandboxes/one/exec", { body: { command: "hello" } });
  expect(ran.body).toMatchObject({ stdout: "hello", exitCode: 0, generation: 1, continuity: "fresh" });

  const stopped = await call("POST", "/v1/sandboxes/one/stop");
  expect(stopped.body).toMatchObject({ state: "stopped", lastDeath: { cause: "stop_requested" } });
  expect(provider.refs()).toEqual([]);

  const again = await call("POST", "/v1/sandboxes/one/exec", { body: { command: "back" } });
  expect(again.body).toMatchObject({ stdout: "back", generation: 2, continuity: "same-filesystem" });

  expect((await call("DELETE", "/v1/sandboxes/one?wait=5")).status).toBe(204);
  expect(await provider.discover("hfinstallation")).toEqual([]);
  const gone = await call("GET", "/v1/sandboxes/one");
  expect([gone.status, codeOf(gone)]).toEqual([410, "gone"]);
  expect((await call("DELETE", "/v1/sandboxes/one")).status).toBe(204);

  const { events } = (await call("GET", "/v1/sandboxes/one/events")).body;
  expect(events.map(({ type }: { type: string }) => type)).toEqual([
    ...["created", "reserved", "launching", "live", "stopping", "gone"],
    ...["reserved", "launching", "live", "stopping", "gone", "deleted"],
  ]);
});

test("a successor under the same name goes on counting", async () => {
  await create({ name: "one" });
  await call("DELETE", "/v1/sandboxes/one?wait=5");
  expect((await create({ name: "one" })).body).toMatchObject({ generation: 2 });
});

test("a hundred get-or-creates of one name: one sandbox, one instance", async () => {
  const app = createApp({
    sandboxes: server.sandboxes,
    log: silentLog,
    token: () => "token",
    notReady: () => undefined,
  });
  const all = await Promise.all(
    Array.from({ length: 100 }, () => call("PUT", "/v1/sandboxes/by-name/shared", { body: {}, app })),
  );
  expect(new Set(all.map(({ body }) => body.id)).size).toBe(1);
  expect(all.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1);
  expect(provider.launches).toHaveLength(1);
});

test("another spec under the same name is a conflict that shows the difference", async () => {
  await call("PUT", "/v1/sandboxes/by-name/one", { body: { network: "none" } });
  const other = await call("PUT", "/v1/sandboxes/by-name/one", { body: { network: "full" } });
  expect(codeOf(other)).toBe("spec_conflict");
  expect(other.body.error.details.difference).toEqual({ network: { has: "none", wanted: "full" } });
});

test("the same Idempotency-Key creates once", async () => {
  const headers = { "Idempotency-Key": "k1" };
  const first = await call("POST", "/v1/sandboxes", { body: {}, headers });
  const second = await call("POST", "/v1/sandboxes", { body: {}, headers });
  expect(second.body.id).toBe(first.body.id);
  expect(provider.launches).toHaveLength(1);
});

test("If-Generation refuses a replaced sandbox before anything is woken", async () => {
  await create({ name: "one" });
  const exec = (headers: Record<string, string>) =>
    call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" }, headers });
  expect((await exec({ "If-Generation": "1" })).body).toMatchObject({ continuity: "same-process" });
  await call("POST", "/v1/sandboxes/one/stop");
  const lost = await exec({ "If-Generation": "1" });
  expect([lost.status, codeOf(lost)]).toEqual([409, "state_lost"]);
  expect(lost.body.error.details).toMatchObject({
    continuity: "same-filesystem",
    lastDeath: { cause: "stop_requested" },
  });
  expect(provider.refs()).toEqual([]);
  expect((await exec({ "If-Generation": "1", "If-Continuity": "same-filesystem" })).body).toMatchObject({
    generation: 2,
  });
  expect(codeOf(await exec({ "If-Generation": "one" }))).toBe("invalid_argument");
});

test("a restarted server adopts what runs, and the keeper is the same", async () => {
  await create({ name: "one" });
  server.crash();
  server = startServer();
  expect((await store.unsettled()).length).toBe(1);
  await server.reconciler.adopt();
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({ state: "running", generation: 1 });
  expect(provider.launches).toHaveLength(1);
});

test("a call that waits while the server shuts down is told so, and the next server finishes what was begun", async () => {
  await create({ name: "one" });
  await call("POST", "/v1/sandboxes/one/stop");
  const holding = await server.sandboxes.get("one");
  server.crash();
  expect(await server.sandboxes.wake(holding).catch((error) => error)).toMatchObject({
    code: "unavailable",
    started: "no",
  });
  server = startServer();
  await server.reconciler.adopt();
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({ state: "running", generation: 2 });
});

test("an instance that died while no server looked is explained, and comes back on the next use", async () => {
  await create({ name: "one" });
  server.crash();
  for (const ref of provider.refs()) provider.kill(ref);
  server = startServer();
  await server.reconciler.adopt();
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "keeper_lost" },
  });
  expect((await call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" } })).body).toMatchObject({
    generation: 2,
  });
});

test("the death of a keeper is seen at once, without a call", async () => {
  await create({ name: "one" });
  for (const ref of provider.refs()) provider.kill(ref);
  const deadline = Date.now() + 2_000;
  while ((await call("GET", "/v1/sandboxes/one")).body.state !== "stopped" && Date.now() < deadline)
    await Bun.sleep(5);
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "keeper_lost" },
  });
});

test("a launch whose answer was lost is cleaned up, and leaves nothing", async () => {
  provider.faults.launch = "lostAnswer";
  const failed = await create({ name: "one" });
  expect([failed.status, codeOf(failed)]).toEqual([503, "launch_failed"]);
  expect(provider.refs()).toEqual([]);
});

test("three failed launches, then it is left alone until an explicit start", async () => {
  provider.faults.launch = "fails";
  await create({ name: "one" });
  const exec = () => call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" } });
  await exec();
  const third = await exec();
  expect(third.body.error).toMatchObject({ code: "launch_failed", retryable: false });
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({
    state: "failed",
    failure: expect.stringContaining("broken"),
  });
  delete provider.faults.launch;
  expect(codeOf(await exec())).toBe("launch_failed");
  expect((await call("POST", "/v1/sandboxes/one/start")).body).toMatchObject({ state: "running" });
});

test("a stop that fails is tried again after its backoff, and only evidence ends it", async () => {
  await create({ name: "one" });
  provider.faults.stop = "survives";
  expect((await call("POST", "/v1/sandboxes/one/stop")).body).toMatchObject({ state: "stopping" });
  const pending = await call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" } });
  expect(codeOf(pending)).toBe("cleanup_pending");
  expect(Number(pending.headers.get("Retry-After"))).toBeGreaterThan(0);
  delete provider.faults.stop;
  const due = await store.nextDueAt();
  expect(due).toBe(now + 2_000);
  now = due ?? 0;
  const { id } = (await call("GET", "/v1/sandboxes/one")).body;
  await server.reconciler.settle(id);
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({ state: "stopped" });
});

test("a stop whose answer was lost is proved by the next look", async () => {
  await create({ name: "one" });
  provider.faults.stop = "lostAnswer";
  await call("POST", "/v1/sandboxes/one/stop");
  now += 10_000;
  delete provider.faults.stop;
  const { id } = (await call("GET", "/v1/sandboxes/one")).body;
  await server.reconciler.settle(id);
  expect((await call("GET", "/v1/sandboxes/one")).body).toMatchObject({ state: "stopped" });
});

test("a disk that cannot be removed keeps the deletion open, and it is finished later", async () => {
  await create({ name: "one" });
  provider.faults.removeDisk = "fails";
  const pending = await call("DELETE", "/v1/sandboxes/one?wait=1");
  expect([pending.status, pending.body.state]).toEqual([202, "deleting"]);
  expect(codeOf(await call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" } }))).toBe("deleting");
  delete provider.faults.removeDisk;
  now += 60_000;
  expect((await call("DELETE", "/v1/sandboxes/one?wait=1")).status).toBe(204);
});

test("a server that dies in the middle of a deletion finishes it at its next start", async () => {
  await create({ name: "one" });
  const holding = await server.sandboxes.get("one");
  await store.save(holding, { sandbox: { desired: "deleted", dueAt: now } });
  server.crash();
  server = startServer();
  await server.reconciler.adopt();
  expect((await call("GET", "/v1/sandboxes/one")).status).toBe(410);
  expect(provider.refs()).toEqual([]);
});

test("a failure to look changes nothing", async () => {
  await create({ name: "one" });
  server.crash();
  provider.faults.observe = "fails";
  server = startServer();
  await server.reconciler.adopt();
  const unreachable = await call("POST", "/v1/sandboxes/one/exec", { body: { command: "x" } });
  expect([unreachable.status, codeOf(unreachable)]).toEqual([503, "unavailable"]);
  expect(provider.refs()).toHaveLength(1);
});

test.each([
  ["GET", "/v1/sandboxes/nobody", undefined, 404, "not_found"],
  ["GET", "/v1/nothing", undefined, 404, "not_found"],
  ["POST", "/v1/sandboxes", { colour: "red" }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { name: "Not A Name" }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { name: "sbx0123456789abc" }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { env: { "A B": "1" } }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { env: { A: "x\0y" } }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { provider: "mainframe" }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes", { limits: { memoryMiB: 128, required: true } }, 501, "unsupported"],
  ["POST", "/v1/sandboxes/one/exec", {}, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes/one/exec", { command: 7 }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes/one/exec", { command: [] }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes/one/exec", { command: "x", timeoutMs: -1 }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes/one/exec", { command: "x", cwd: "/a\0b" }, 400, "invalid_argument"],
  ["POST", "/v1/sandboxes/one/exec", { command: "x", cwd: "relative" }, 400, "invalid_argument"],
  ["GET", "/v1/sandboxes?limit=0", undefined, 400, "invalid_argument"],
])("%s %s %j is refused with %d %s", async (method, path, body, status, code) => {
  const refused = await call(method, path, { body });
  expect([refused.status, codeOf(refused)]).toEqual([status, code]);
  expect(refused.body.error.message).not.toBe("");
  expect(refused.body.error.hint ?? "").not.toBe("");
  expect(refused.headers.get("Holdfast-Request-Id")).toMatch(/^req_/);
});

test("bad JSON, a body that is too large and a wrong token are refused", async () => {
  const raw = (body: string, authorization = "Bearer token") =>
    server.app.request(
      "/v1/sandboxes",
      {
        method: "POST",
        headers: { authorization, "content-type": "application/json", "content-length": String(body.length) },
        body,
      },
      {},
    );
  expect((await raw("{ not json")).status).toBe(400);
  expect((await raw(`"${"x".repeat(17 * 1024 * 1024)}"`)).status).toBe(413);
  for (const token of ["Bearer nope", "Bearer ", "token", "Bearer tokentoken"])
    expect((await raw("{}", token)).status).toBe(401);
  expect((await server.app.request("/healthz", {}, {})).status).toBe(200);
  expect((await server.app.request("/v1/sandboxes", {}, { trusted: true })).status).toBe(200);
});

test("more calls at once than the limit are told to come back", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => create()));
  const codes = answers.map((answer) => answer.status);
  expect(codes.filter((status) => status === 201)).toHaveLength(8);
  expect(codes.filter((status) => status === 429)).toHaveLength(12);
});

test("the OpenAPI document has every route, with a summary and shapes by their names", async () => {
  const document = await (await server.app.request("/openapi.json")).json();
  const operations = Object.values<Record<string, { summary?: string }>>(document.paths).flatMap(
    Object.values,
  );
  expect(operations.filter(({ summary }) => !summary)).toEqual([]);
  expect(document.paths["/v1/sandboxes/{id}"].get.responses[200].content["application/json"].schema).toEqual({
    $ref: "#/components/schemas/Sandbox",
  });
  expect(Object.keys(document.paths)).toEqual(
    expect.arrayContaining([
      "/v1/sandboxes",
      "/v1/sandboxes/by-name/{name}",
      "/v1/sandboxes/{id}/exec",
      "/v1/sandboxes/{id}/processes/{processId}/logs",
    ]),
  );
});

test("only a process's stdin has no bound, not what is called like it", async () => {
  const labels = { a: "x".repeat(17 * 1024 * 1024) };
  const answer = await call("PUT", "/v1/sandboxes/by-name/stdin", { body: { labels } });
  expect([answer.status, codeOf(answer)]).toEqual([413, "too_large"]);
});
