import { afterEach, beforeEach, expect, test } from "bun:test";
import { codeOf, TestServer } from "./test-server.ts";

let server: TestServer;
beforeEach(async () => {
  server = await TestServer.start();
});
afterEach(() => server.close());

const call: TestServer["call"] = (...args) => server.call(...args);
const create = (body: Record<string, unknown> = {}) =>
  call("POST", "/sandboxes", { body: { name: "one", ...body } });
const get = async () => (await call("GET", "/sandboxes/one")).body;
const exec = (headers: Record<string, string> = {}) =>
  call("POST", "/sandboxes/one/exec", { body: { command: "x" }, headers });
const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  call("POST", `/sandboxes/one/${path}`, { body, headers });
const typesOf = async () =>
  (await call("GET", "/sandboxes/one/events")).body.events.map(({ type }: { type: string }) => type);

function keeper() {
  const [ref] = server.provider.refs();
  if (ref === undefined) throw new Error("nothing runs");
  return server.provider.keeperOf(ref);
}

test("a sandbox says how it lives and when it is reaped; PATCH changes it", async () => {
  const made = (await create({ lifetimeSeconds: 60 })).body;
  expect(made).toMatchObject({
    persistent: true,
    lifetimeSeconds: 60,
    onIdle: "stop",
    filesystem: "persistent",
    maxLifetimeSeconds: null,
    turnTimeoutSeconds: 3600,
    persistAcrossRestarts: true,
    spec: {},
    openTurns: 0,
    heldAwakeBy: [],
  });
  expect(Date.parse(made.reapsAt) - Date.parse(made.lastUsedAt)).toBe(60_000);
  const patch = (body: unknown) => call("PATCH", "/sandboxes/one", { body });
  const changed = (await patch({ lifetimeSeconds: 120, labels: { a: "b" } })).body;
  expect(changed).toMatchObject({ lifetimeSeconds: 120, onIdle: "stop", labels: { a: "b" } });
  expect((await patch({ onIdle: "keep" })).body.reapsAt).toBeUndefined();
  expect(codeOf(await patch({ network: "none" }))).toBe("invalid_argument");
});

test.each([
  [{ persistent: false }, { filesystem: "ephemeral", onIdle: "remove" }],
  [{ filesystem: "ephemeral" }, { persistent: true, onIdle: "remove" }],
  [{ persistent: false, filesystem: "persistent" }, { onIdle: "remove" }],
])("%j means %j", async (asked, expected) => {
  expect((await create(asked)).body).toMatchObject({ ...asked, ...expected });
});

test.each([
  [{ filesystem: "ephemeral", onIdle: "stop" }],
  [{ lifetimeSeconds: 0 }],
  [{ lifetimeSeconds: 1.5 }],
  [{ onIdle: "die" }],
  [{ maxLifetimeSeconds: -1 }],
])("%j is refused", async (asked) => {
  const refused = await create(asked);
  expect([refused.status, codeOf(refused)]).toEqual([400, "invalid_argument"]);
  expect(server.provider.launches).toEqual([]);
});

test("get-or-create with another policy is a conflict; one that is not named may be any", async () => {
  const ensure = (body: unknown) => call("PUT", "/sandboxes/by-name/one", { body });
  expect((await ensure({ lifetimeSeconds: 60 })).status).toBe(201);
  expect((await ensure({})).status).toBe(200);
  const other = await ensure({ lifetimeSeconds: 61 });
  expect(other.body.error).toMatchObject({
    code: "spec_conflict",
    details: { difference: { lifetimeSeconds: { has: 60, wanted: 61 } } },
  });
});

test("a turn holds it, calls renew it, and its end is answered the same again", async () => {
  await create();
  const turn = (await post("turns", { turnId: "t1" })).body;
  expect(turn).toEqual({ turnId: "t1", startedAt: expect.any(String), expiresAt: expect.any(String) });
  expect(await get()).toMatchObject({ openTurns: 1, heldAwakeBy: ["turn t1 is open"] });
  expect((await get()).reapsAt).toBeUndefined();
  server.clock.pass(60_000);
  await exec({ "Holdfast-Turn": "t1" });
  const renewed = (await post("turns", { turnId: "t1" })).body;
  expect(Date.parse(renewed.expiresAt) - Date.parse(turn.expiresAt)).toBe(60_000);
  const ended = (await post("turns/t1/end")).body;
  expect(ended).toEqual({ turnId: "t1", startedAt: turn.startedAt, endedAt: expect.any(String) });
  expect((await post("turns/t1/end")).body).toEqual(ended);
  expect(await get()).toMatchObject({ openTurns: 0, state: "running" });
  expect(codeOf(await exec({ "Holdfast-Turn": "t1" }))).toBe("wrong_state");
  expect(codeOf(await post("turns/nope/end"))).toBe("not_found");
});

test("the end of the last turn removes what is not persistent, with evidence", async () => {
  await create({ persistent: false });
  for (const turnId of ["t1", "t2"]) await post("turns", { turnId });
  await post("turns/t1/end");
  expect((await exec()).status).toBe(200);
  const ended = await post("turns/t2/end");
  expect(ended.status).toBe(200);
  expect((await call("DELETE", "/sandboxes/one?wait=10")).status).toBe(204);
  expect(server.provider.leftovers()).toEqual([]);
  expect((await post("turns/t2/end")).body).toEqual(ended.body);
  expect((await typesOf()).slice(-4)).toEqual(["stopping", "gone", "disk_removed", "deleted"]);
});

test("a claim lets its holder work and nobody else, can be taken over, and its fence grows", async () => {
  await create();
  const made = (await post("claims", { holder: "a", ttlSeconds: 30 })).body;
  expect(made).toEqual({
    claimId: expect.any(String),
    holder: "a",
    fence: 1,
    token: expect.any(String),
    expiresAt: expect.any(String),
  });
  const mine = { "Holdfast-Claim": made.token };
  expect((await exec(mine)).status).toBe(200);
  const refused = await exec();
  expect(refused.body.error).toMatchObject({ code: "claim_held", details: { holder: "a" }, started: "no" });
  expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
  expect(await get()).toMatchObject({ claim: { holder: "a" } });
  expect(keeper().claim).toEqual({ fence: 1, required: true });

  expect(codeOf(await post("claims", { holder: "b" }))).toBe("claim_held");
  const theirs = (await post("claims", { holder: "b", takeover: true })).body;
  expect(theirs.fence).toBe(2);
  expect(codeOf(await exec(mine))).toBe("claim_lost");
  expect(codeOf(await post(`claims/${made.claimId}/renew`, {}, mine))).toBe("claim_lost");
  expect(codeOf(await post(`claims/${theirs.claimId}/renew`))).toBe("invalid_argument");
  const { events } = (await call("GET", "/sandboxes/one/events")).body;
  expect(events.at(-1)).toMatchObject({
    type: "claim_taken_over",
    actor: "b",
    detail: { holder: "b", from: "a", fence: 2 },
  });

  const headers = { "Holdfast-Claim": theirs.token };
  const renewed = (await post(`claims/${theirs.claimId}/renew`, { ttlSeconds: 300 }, headers)).body;
  expect(Date.parse(renewed.expiresAt)).toBeGreaterThan(Date.parse(theirs.expiresAt));
  expect((await call("DELETE", `/sandboxes/one/claims/${theirs.claimId}`, { headers })).status).toBe(204);
  expect((await exec()).status).toBe(200);
});

test.each([
  ["POST", "stop"],
  ["POST", "start"],
  ["POST", "touch"],
  ["POST", "turns"],
  ["POST", "sessions"],
  ["POST", "processes/p1/kill"],
  ["POST", "commands/c1/cancel"],
  ["DELETE", "terminals/t1"],
  ["GET", "terminals/t1/connect"],
])("a claimed sandbox refuses others' %s %s, and lets them look", async (method, path) => {
  await create();
  await post("claims", { holder: "a" });
  const body = method === "GET" ? undefined : {};
  expect(codeOf(await call(method, `/sandboxes/one/${path}`, { body }))).toBe("claim_held");
  expect(codeOf(await call("DELETE", "/sandboxes/one"))).toBe("claim_held");
  expect(codeOf(await call("PATCH", "/sandboxes/one", { body: {} }))).toBe("claim_held");
  expect((await get()).state).toBe("running");
});

test("a claim that nobody renews ends by itself", async () => {
  await create();
  const { token } = (await post("claims", { holder: "a", ttlSeconds: 30 })).body;
  server.clock.pass(31_000);
  expect(codeOf(await exec({ "Holdfast-Claim": token }))).toBe("claim_lost");
  expect((await exec()).status).toBe(200);
  expect((await get()).claim).toBeUndefined();
});

test("release ends the turn and the claim that it carries, and leaves what runs", async () => {
  await create();
  const { token } = (await post("claims", { holder: "a" })).body;
  const headers = { "Holdfast-Claim": token, "Holdfast-Turn": "t1" };
  await post("turns", { turnId: "t1" }, headers);
  expect((await post("release", {}, headers)).body).toMatchObject({ state: "running", openTurns: 0 });
  expect((await get()).claim).toBeUndefined();
  expect((await post("release")).status).toBe(200);
  expect(server.provider.launches).toHaveLength(1);
});

test("a touch counts in the keeper, under a claim, too, and wakes nothing", async () => {
  await create();
  const { token } = (await post("claims", { holder: "a" })).body;
  const headers = { "Holdfast-Claim": token };
  expect((await post("touch", {}, headers)).body).toMatchObject({ state: "running" });
  expect(keeper().touches).toBe(1);
  await post("stop", {}, headers);
  expect((await post("touch", {}, headers)).body).toMatchObject({ state: "stopped" });
  expect(server.provider.launches).toHaveLength(1);
});

test("looking never wakes, never counts, and only says what stands", async () => {
  await create({ lifetimeSeconds: 60 });
  await post("stop");
  const before = await get();
  server.clock.pass(10_000);
  for (const path of ["", "/why", "/events"])
    expect((await call("GET", `/sandboxes/one${path}`)).status).toBe(200);
  for (const path of ["/processes", "/processes/p1", "/processes/p1/wait", "/terminals", "/sessions"])
    expect(codeOf(await call("GET", `/sandboxes/one${path}`))).toBe("wrong_state");
  for (const path of ["processes/p1/kill", "processes/p1/signal"])
    expect(codeOf(await post(path, { signal: "SIGTERM" }))).toBe("wrong_state");
  expect(await get()).toEqual(before);
  expect(server.provider.launches).toHaveLength(1);
});

test("a call that meets a keeper which was just told to rest waits for the stop, and runs in the next instance", async () => {
  await create();
  keeper().quiesced = true;
  const { sandboxes } = server.lifecycle;
  const refused = Promise.withResolvers<void>();
  const use = sandboxes.use.bind(sandboxes);
  sandboxes.use = async (...args) => {
    const inUse = await use(...args);
    const again = () => {
      refused.resolve();
      return inUse.again();
    };
    return { ...inUse, again };
  };
  const running = exec();
  await refused.promise;
  await post("stop");
  const ran = await running;
  expect(ran.body).toMatchObject({ stdout: "x", generation: 2, continuity: "same-filesystem" });
  expect(ran.headers.get("Holdfast-Generation")).toBe("2");
});

test("an idle sandbox is stopped; one that was used in the moment of its judgement goes on", async () => {
  const { id } = (await create({ lifetimeSeconds: 30 })).body;
  const idleFor = (ms: number) => {
    keeper().idleForMs = ms;
    server.clock.pass(ms);
  };
  idleFor(31_000);
  const [used] = await server.clock.until(Promise.all([exec(), server.lifecycle.reconciler.settle(id)]));
  expect([used.status, used.body.generation, keeper().quiesced]).toEqual([200, 1, false]);
  idleFor(31_000);
  await server.lifecycle.reconciler.settle(id);
  expect(await get()).toMatchObject({ state: "stopped", lastDeath: { cause: "idle" } });
  expect((await exec()).body).toMatchObject({ generation: 2, continuity: "same-filesystem" });
});

test("why names what holds it, when it is reaped, and what happens next", async () => {
  await create({ lifetimeSeconds: 60 });
  keeper().idleForMs = 10_000;
  const idle = (await call("GET", "/sandboxes/one/why")).body;
  expect(idle).toMatchObject({
    sandbox: { name: "one", state: "running", generation: 1 },
    heldAwakeBy: [],
    idleForSeconds: 10,
    onIdle: "stop",
    openTurns: [],
    debts: [],
    instance: { phase: "live", provider: "fake", generation: 1, attempts: 0 },
    next: expect.stringContaining("its files are kept"),
  });
  keeper().heldAwakeBy = ["command c1 is running"];
  await post("turns", { turnId: "t1" });
  const held = (await call("GET", "/sandboxes/one/why")).body;
  expect(held.heldAwakeBy).toEqual(["turn t1 is open", "command c1 is running"]);
  expect(held.openTurns).toMatchObject([{ turnId: "t1" }]);
});

test("the timeline is followed as it grows, continues after Last-Event-ID, and ends with the sandbox", async () => {
  await create();
  const follow = async (headers: Record<string, string> = {}) =>
    server.app.request("/v1/sandboxes/one/events?follow=true", { headers }, { trusted: true });
  const response = await follow();
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reading = response.text();
  await post("stop");
  await call("DELETE", "/sandboxes/one?wait=10");
  const text = await server.clock.until(reading);
  const blocks = text.split("\n\n").filter((block) => block.startsWith("id: "));
  const seen = blocks.map((block) => JSON.parse(block.slice(block.indexOf("{"))));
  expect(seen.map(({ type }) => type)).toEqual(await typesOf());
  expect(blocks.map((block) => Number(/^id: (\d+)/.exec(block)?.[1]))).toEqual(seen.map(({ seq }) => seq));
  expect(text).toEndWith("event: end\ndata: {}\n\n");
  const rest = await (await follow({ "Last-Event-ID": String(seen.at(-2).seq) })).text();
  expect(rest.match(/"type":"\w+"/g)).toEqual(['"type":"deleted"']);
  expect(
    (await server.app.request("/v1/sandboxes/nobody/events?follow=true", {}, { trusted: true })).status,
  ).toBe(404);
});

test("who stops following is not followed for", async () => {
  await create();
  const response = await server.app.request("/v1/sandboxes/one/events?follow=true", {}, { trusted: true });
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  await call("DELETE", "/sandboxes/one?wait=10");
});

test("fifty creates for ten slots: ten, and the others are told why; who queues gets the next room", async () => {
  await server.close();
  server = await TestServer.start({ slots: 10 });
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, n) => call("POST", "/sandboxes", { body: { name: `n${n}` } })),
  );
  expect(all.filter(({ status }) => status === 201)).toHaveLength(10);
  const refused = all.filter(({ status }) => status !== 201);
  expect(new Set(refused.map(codeOf))).toEqual(new Set(["capacity_exhausted"]));
  expect(refused[0]?.body.error).toMatchObject({
    retryable: true,
    details: { resource: "slots", used: 10, capacity: 10 },
  });
  expect(refused[0]?.headers.get("Retry-After")).toBe("1");
  const queued = call("POST", "/sandboxes?queue=60", { body: { name: "queued" } });
  const made = all.find(({ status }) => status === 201)?.body.name;
  await call("DELETE", `/sandboxes/${made}?wait=10`);
  expect((await server.clock.until(queued)).status).toBe(201);
  const late = await server.clock.until(call("POST", "/sandboxes?queue=5", { body: {} }));
  expect([late.status, codeOf(late)]).toEqual([503, "capacity_exhausted"]);
  expect(codeOf(await call("POST", "/sandboxes?queue=601", { body: {} }))).toBe("invalid_argument");
});

test("leases are shown page by page, without a secret", async () => {
  for (const name of ["a", "b", "c"]) await create({ name });
  const first = (await call("GET", "/leases?limit=2")).body;
  const second = (await call("GET", `/leases?limit=2&cursor=${first.nextCursor}`)).body;
  const all = [...first.leases, ...second.leases];
  expect(all).toHaveLength(3);
  expect(second.nextCursor).toBeUndefined();
  expect(all[0]).toMatchObject({
    phase: "live",
    provider: "fake",
    origin: "launch",
    generation: 1,
    attempts: 0,
  });
  const secrets = (await server.store.leasesOf("fake")).map(({ secret }) => secret);
  for (const secret of secrets) expect(JSON.stringify(all)).not.toContain(secret);
});

test("what no page has given, and keys that are empty or endless, are refused before they reach the rows", async () => {
  for (const cursor of ["-1", "1.5", "1e300", "x", "9".repeat(16)])
    expect([cursor, codeOf(await call("GET", `/sandboxes?cursor=${cursor}`))]).toEqual([
      cursor,
      "invalid_argument",
    ]);
  for (const key of ["", "k".repeat(256)]) {
    const made = await call("POST", "/sandboxes", { body: {}, headers: { "Idempotency-Key": key } });
    expect([made.status, codeOf(made)]).toEqual([400, "invalid_argument"]);
  }
});

test("labels and an environment that would make every later look at the rows slow are refused", async () => {
  const labels = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
  const env = (length: number) => ({ A: "x".repeat(length) });
  const made = [{ labels: labels(64) }, { labels: labels(65) }, { env: env(500_000) }, { env: env(600_000) }];
  const statuses = await Promise.all(
    made.map(async (body) => (await call("POST", "/sandboxes", { body })).status),
  );
  expect(statuses).toEqual([201, 400, 201, 400]);
  await create();
  const changed = await call("PATCH", "/sandboxes/one", { body: { labels: labels(65) } });
  expect(changed.body.error.message).toBe("labels: at most 64 labels");
});

test("providers say what they can do and what room they have", async () => {
  await create();
  const { providers } = (await call("GET", "/providers")).body;
  expect(providers).toMatchObject([
    { provider: "fake", state: "ok", capacity: { slots: { used: 1, total: null } } },
  ]);
  server.provider.faults.capacity = "unknown";
  server.clock.pass(20_000);
  const [unmeasured] = (await call("GET", "/providers")).body.providers;
  expect(unmeasured.capacity.disk.unknown).toContain("cannot measure");
  expect(codeOf(await create({ name: "two" }))).toBe("capacity_unknown");
});

test("a dry sweep says what it would do and does nothing", async () => {
  const { id } = (await create()).body;
  const dry = (await call("POST", "/admin/sweep?dryRun=true")).body;
  expect(dry).toEqual({
    dryRun: true,
    providers: [{ provider: "fake", found: { instances: 1, disks: 1 }, adopted: 1, actions: [], foreign: 0 }],
  });
  server.provider.faults.discover = "fails";
  const [blind] = (await call("POST", "/admin/sweep")).body.providers;
  expect(blind).toMatchObject({ actions: [], error: expect.stringContaining("only in part") });
  expect((await get()).id).toBe(id);
});

test("scenario 33: abandon frees the sandbox for another instance, is recorded, and the old one is hunted on", async () => {
  await create();
  server.provider.faults.stop = "survives";
  await post("stop");
  const freed = await call("POST", "/admin/abandon", { body: { sandbox: "one", reason: "its host burned" } });
  expect(freed.status).toBe(200);
  expect((await server.clock.until(exec())).body).toMatchObject({ generation: 2 });
  const { events } = (await call("GET", "/sandboxes/one/events")).body;
  expect(events.find(({ type }: { type: string }) => type === "abandoned")).toMatchObject({
    detail: expect.objectContaining({ reason: "its host burned" }),
  });
  const why = (await call("GET", "/sandboxes/one/why")).body;
  expect(why.debts).toMatchObject([{ phase: "debt", generation: 1 }]);
  expect(codeOf(await call("POST", "/admin/abandon", { body: { sandbox: "one" } }))).toBe("invalid_argument");
});
