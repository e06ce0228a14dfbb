import { afterEach, beforeEach, expect, test } from "bun:test";
import { codeOf, TestServer } from "./test-server.ts";

let server: TestServer;
beforeEach(async () => {
  server = await TestServer.start();
});
afterEach(() => server.close());

const call: TestServer["call"] = (...args) => server.call(...args);
const create = (body: unknown = {}) => call("POST", "/sandboxes", { body });
const exec = (name: string, headers: Record<string, string> = {}) =>
  call("POST", `/sandboxes/${name}/exec`, { body: { command: "x" }, headers });

async function becomes(name: string, state: string): Promise<void> {
  while ((await call("GET", `/sandboxes/${name}`)).body.state !== state) await Bun.sleep(2);
}

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

  const ran = await call("POST", "/sandboxes/one/exec", { body: { command: "hello" } });
  expect(ran.body).toMatchObject({ stdout: "hello", exitCode: 0, generation: 1, continuity: "fresh" });

  const stopped = await call("POST", "/sandboxes/one/stop");
  expect(stopped.body).toMatchObject({ state: "stopped", lastDeath: { cause: "stop_requested" } });
  expect(server.provider.refs()).toEqual([]);

  const again = await call("POST", "/sandboxes/one/exec", { body: { command: "back" } });
  expect(again.body).toMatchObject({ stdout: "back", generation: 2, continuity: "same-filesystem" });

  expect((await call("DELETE", "/sandboxes/one?wait=5")).status).toBe(204);
  expect(await server.provider.discover()).toEqual([]);
  const gone = await call("GET", "/sandboxes/one");
  expect([gone.status, codeOf(gone)]).toEqual([410, "gone"]);
  expect((await call("DELETE", "/sandboxes/one")).status).toBe(204);

  const { events } = (await call("GET", "/sandboxes/one/events")).body;
  expect(events.map(({ type }: { type: string }) => type)).toEqual([
    ...["created", "launching", "live", "stopping", "gone"],
    ...["launching", "live", "stopping", "gone", "disk_removed", "deleted"],
  ]);
});

test("a successor under the same name goes on counting", async () => {
  await create({ name: "one" });
  await call("DELETE", "/sandboxes/one?wait=5");
  expect((await create({ name: "one" })).body).toMatchObject({ generation: 2 });
});

test("a hundred get-or-creates of one name: one sandbox, one instance", async () => {
  const all = await Promise.all(
    Array.from({ length: 100 }, () => call("PUT", "/sandboxes/by-name/shared", { body: {} })),
  );
  expect(new Set(all.map(({ body }) => body.id)).size).toBe(1);
  expect(all.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1);
  expect(server.provider.launches).toHaveLength(1);
});

test("another spec under the same name is a conflict that shows the difference", async () => {
  await call("PUT", "/sandboxes/by-name/one", { body: { network: "none" } });
  const other = await call("PUT", "/sandboxes/by-name/one", { body: { network: "full" } });
  expect(codeOf(other)).toBe("spec_conflict");
  expect(other.body.error.details.difference).toEqual({ network: { has: "none", wanted: "full" } });
});

test("the same Idempotency-Key creates once", async () => {
  const headers = { "Idempotency-Key": "k1" };
  const first = await call("POST", "/sandboxes", { body: {}, headers });
  const second = await call("POST", "/sandboxes", { body: {}, headers });
  expect(second.body.id).toBe(first.body.id);
  expect(server.provider.launches).toHaveLength(1);
});

test("If-Generation refuses a replaced sandbox before anything is woken", async () => {
  await create({ name: "one" });
  expect((await exec("one", { "If-Generation": "1" })).body).toMatchObject({ continuity: "same-process" });
  await call("POST", "/sandboxes/one/stop");
  const lost = await exec("one", { "If-Generation": "1" });
  expect([lost.status, codeOf(lost)]).toEqual([409, "state_lost"]);
  expect(lost.body.error.details).toMatchObject({
    continuity: "same-filesystem",
    lastDeath: { cause: "stop_requested" },
  });
  expect(server.provider.refs()).toEqual([]);
  expect(
    (await exec("one", { "If-Generation": "1", "If-Continuity": "same-filesystem" })).body,
  ).toMatchObject({
    generation: 2,
  });
  expect(codeOf(await exec("one", { "If-Generation": "one" }))).toBe("invalid_argument");
});

test("a restarted server adopts what runs, and the keeper is the same", async () => {
  await create({ name: "one" });
  await server.end();
  expect((await server.store.unsettled()).length).toBe(1);
  await server.begin();
  expect((await call("GET", "/sandboxes/one")).body).toMatchObject({ state: "running", generation: 1 });
  expect(server.provider.launches).toHaveLength(1);
});

test("a call that waits while the server shuts down is told so, and the next server finishes what was begun", async () => {
  await create({ name: "one" });
  await call("POST", "/sandboxes/one/stop");
  const holding = await server.lifecycle.sandboxes.get("one");
  await server.end();
  expect(await server.lifecycle.sandboxes.wake(holding).catch((error: unknown) => error)).toMatchObject({
    code: "unavailable",
    started: "no",
  });
  await server.begin();
  expect((await call("GET", "/sandboxes/one")).body).toMatchObject({ state: "running", generation: 2 });
});

test("an instance that died while no server looked is explained, and comes back on the next use", async () => {
  await create({ name: "one" });
  await server.end();
  for (const ref of server.provider.refs()) server.provider.kill(ref);
  await server.begin();
  expect((await call("GET", "/sandboxes/one")).body).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "keeper_lost" },
  });
  expect((await exec("one")).body).toMatchObject({
    generation: 2,
  });
});

test("the death of a keeper is seen at once, without a call", async () => {
  await create({ name: "one" });
  // A line that breaks as soon as it stands is looked after a second later.
  server.clock.pass(1000);
  for (const ref of server.provider.refs()) server.provider.kill(ref);
  await becomes("one", "stopped");
  expect((await call("GET", "/sandboxes/one")).body).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "keeper_lost" },
  });
});

test("scenario 2: a launch whose answer was lost is found by its name, and there is one instance", async () => {
  server.provider.faults.launch = "lostAnswer";
  const making = create({ name: "one" });
  while (server.provider.launches.length === 0) await Bun.sleep(1);
  delete server.provider.faults.launch;
  const made = await server.clock.until(making);
  expect([made.status, made.body.generation]).toEqual([201, 1]);
  expect(server.provider.refs()).toHaveLength(1);
});

test("three failed launches, then it is left alone until an explicit start", async () => {
  server.provider.faults.launch = "fails";
  await create({ name: "one" });
  await exec("one");
  const third = await exec("one");
  expect(third.body.error).toMatchObject({ code: "launch_failed", retryable: false });
  expect((await call("GET", "/sandboxes/one")).body).toMatchObject({
    state: "failed",
    failure: expect.stringContaining("broken"),
  });
  delete server.provider.faults.launch;
  expect(codeOf(await exec("one"))).toBe("launch_failed");
  expect((await call("POST", "/sandboxes/one/start")).body).toMatchObject({ state: "running" });
});

test("a stop that fails is tried again after its backoff, and only evidence ends it", async () => {
  await create({ name: "one" });
  server.provider.faults.stop = "survives";
  expect((await call("POST", "/sandboxes/one/stop")).body).toMatchObject({ state: "stopping" });
  const pending = await server.clock.until(exec("one"));
  expect(codeOf(pending)).toBe("cleanup_pending");
  expect(Number(pending.headers.get("Retry-After"))).toBeGreaterThan(0);
  delete server.provider.faults.stop;
  expect((await server.clock.until(exec("one"))).body).toMatchObject({ generation: 2 });
});

test("a stop whose answer was lost is proved by the next look", async () => {
  await create({ name: "one" });
  server.provider.faults.stop = "lostAnswer";
  await call("POST", "/sandboxes/one/stop");
  delete server.provider.faults.stop;
  await server.clock.until(becomes("one", "stopped"));
});

test("a disk that cannot be removed keeps the deletion open, and it is finished later", async () => {
  await create({ name: "one" });
  server.provider.faults.removeDisk = "fails";
  const pending = await server.clock.until(call("DELETE", "/sandboxes/one?wait=1"));
  expect(pending.body).toEqual({ state: "deleting", retryAfter: expect.any(Number) });
  expect([pending.status, pending.headers.get("Retry-After")]).toEqual([
    202,
    String(pending.body.retryAfter),
  ]);
  expect(codeOf(await exec("one"))).toBe("deleting");
  delete server.provider.faults.removeDisk;
  expect((await server.clock.until(call("DELETE", "/sandboxes/one?wait=120"))).status).toBe(204);
});

test("a server that dies in the middle of a deletion finishes it at its next start", async () => {
  await create({ name: "one" });
  const holding = await server.lifecycle.sandboxes.get("one");
  await server.end();
  await server.store.save(holding, { sandbox: { desired: "deleted" } });
  await server.begin();
  expect((await call("GET", "/sandboxes/one")).status).toBe(410);
  expect(server.provider.refs()).toEqual([]);
});

test("a failure to look changes nothing", async () => {
  await create({ name: "one" });
  await server.end();
  server.provider.faults.observe = "fails";
  await server.begin();
  const unreachable = await server.clock.until(exec("one"));
  expect([unreachable.status, codeOf(unreachable)]).toEqual([503, "unavailable"]);
  expect(server.provider.refs()).toHaveLength(1);
});

test.each([
  ["GET", "/sandboxes/nobody", undefined, 404, "not_found"],
  ["GET", "/nothing", undefined, 404, "not_found"],
  ["POST", "/sandboxes", { colour: "red" }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { name: "Not A Name" }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { name: "sbx0123456789abc" }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { env: { "A B": "1" } }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { env: { A: "x\0y" } }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { provider: "mainframe" }, 400, "invalid_argument"],
  ["POST", "/sandboxes", { limits: { memoryMiB: 128, required: true } }, 501, "unsupported"],
  ["POST", "/sandboxes/one/exec", {}, 400, "invalid_argument"],
  ["POST", "/sandboxes/one/exec", { command: 7 }, 400, "invalid_argument"],
  ["POST", "/sandboxes/one/exec", { command: [] }, 400, "invalid_argument"],
  ["POST", "/sandboxes/one/exec", { command: "x", timeoutMs: -1 }, 400, "invalid_argument"],
  ["POST", "/sandboxes/one/exec", { command: "x", cwd: "/a\0b" }, 400, "invalid_argument"],
  ["POST", "/sandboxes/one/exec", { command: "x", cwd: "relative" }, 400, "invalid_argument"],
  ["GET", "/sandboxes?limit=0", undefined, 400, "invalid_argument"],
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
  const app = server.appWith({ maxRequests: 8 });
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => call("POST", "/sandboxes", { body: {}, app })),
  );
  const codes = answers.map((answer) => answer.status);
  expect(codes.filter((status) => status === 201)).toHaveLength(8);
  expect(codes.filter((status) => status === 429)).toHaveLength(12);
});

test("the OpenAPI document has every route, with a summary and shapes by their names", async () => {
  const document = await (await server.app.request("/openapi.json")).json();
  type Operation = { summary?: string; operationId?: string };
  const operations = Object.values<Record<string, Operation>>(document.paths).flatMap(
    Object.values<Operation>,
  );
  expect(operations.filter(({ summary, operationId }) => !summary || !operationId)).toEqual([]);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
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
  const answer = await call("PUT", "/sandboxes/by-name/stdin", { body: { labels } });
  expect([answer.status, codeOf(answer)]).toEqual([413, "too_large"]);
});
