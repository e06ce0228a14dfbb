import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TestServer } from "../test-server.ts";
import { Meters } from "./meters.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ slots: 50 });
});
afterAll(() => server.close());

async function scrape(): Promise<string> {
  const headers = { Authorization: "Bearer token" };
  return (await server.app.request("/metrics", { headers }, {})).text();
}

/** By its name and labels as they are printed. */
function valueIn(metrics: string, series: string): number | undefined {
  const line = metrics.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const lines = () => server.lines.filter(({ message }) => message === "request").map(({ fields }) => fields);

/** What is told of an answer comes a moment later, but before the metrics that it belongs to. */
async function allLines(): Promise<ReturnType<typeof lines>> {
  await scrape();
  return lines();
}

async function forgetLines(): Promise<void> {
  await scrape();
  server.lines.length = 0;
}

test("what happens to sandboxes is counted", async () => {
  await server.call("POST", "/sandboxes", { body: { name: "one" } });
  await server.call("POST", "/sandboxes", { body: { name: "two" } });
  await server.call("POST", "/sandboxes/one/exec", { body: { command: "hello" } });
  await server.call("POST", "/sandboxes/one/stop");
  await server.call("POST", "/sandboxes/nothing/exec", { body: { command: "x" } });
  const metrics = await scrape();
  const expected = {
    'holdfast_sandboxes{provider="fake",state="running"}': 1,
    'holdfast_sandboxes{provider="fake",state="stopped"}': 1,
    'holdfast_leases{provider="fake",phase="live"}': 1,
    'holdfast_launches_total{provider="fake",outcome="live"}': 2,
    'holdfast_launch_seconds_count{provider="fake"}': 2,
    'holdfast_stops_total{provider="fake",cause="stop_requested"}': 1,
    'holdfast_evidence_total{provider="fake",kind="exited"}': 1,
    'holdfast_events_total{type="created"}': 2,
    'holdfast_provider_up{provider="fake"}': 1,
    'holdfast_slots_limit{provider="fake"}': 50,
    'holdfast_requests_total{method="POST",route="/v1/sandboxes",status="201"}': 2,
    'holdfast_requests_total{method="POST",route="/v1/sandboxes/{id}/exec",status="200"}': 1,
    'holdfast_requests_total{method="POST",route="/v1/sandboxes/{id}/exec",status="404"}': 1,
    'holdfast_refusals_total{code="not_found"}': 1,
    'holdfast_provider_call_seconds_count{provider="fake",call="launch"}': 2,
    holdfast_exec_seconds_count: 1,
    holdfast_exec_overhead_seconds_count: 1,
    holdfast_due_lag_seconds: 0,
    holdfast_open_streams: 0,
  };
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, valueIn(metrics, name)]))).toEqual(
    expected,
  );
  expect(valueIn(metrics, "holdfast_reconcile_seconds_count")).toBeGreaterThan(2);
  expect(valueIn(metrics, 'holdfast_disk_free_bytes{provider="fake"}')).toBeGreaterThan(0);
  expect(valueIn(metrics, 'holdfast_sent_bytes_total{kind="http"}')).toBeGreaterThan(100);
});

test("the page is Prometheus' text: each metric has its help and its type, and each line is a sample", async () => {
  const metrics = await scrape();
  const samples = metrics.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  for (const line of samples) expect(line).toMatch(/^[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [-+\d.e]+$/);
  for (const { name } of new Meters().all()) {
    expect(metrics).toContain(`# HELP ${name} `);
    expect(metrics).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge|histogram)$`, "m"));
  }
});

test.each(["operating.md", "grafana-board.json"])("docs/%s names every metric, and no other", (name) => {
  const text = readFileSync(join(import.meta.dir, "../../../../docs", name), "utf8");
  const known = new Meters().all().map((metric) => metric.name);
  const named = [...text.matchAll(/\b(?:holdfast|process)_[a-z_]+/g)].map(([word]) =>
    known.includes(word) ? word : word.replace(/_(bucket|sum|count)$/, ""),
  );
  expect(named.filter((word) => !known.includes(word))).toEqual([]);
  // A board shows what changes; a table has everything.
  const missing = known.filter((metric) => !named.includes(metric));
  const unseen = [
    ...["holdfast_slots_limit", "holdfast_disk_promised_bytes", "holdfast_events_total"],
    ...["holdfast_info", "process_start_time_seconds"],
  ];
  expect(missing.sort()).toEqual(name.endsWith(".md") ? [] : unseen.sort());
});

test("metrics need the token, and a client cannot invent labels", async () => {
  expect((await server.app.request("/metrics", {}, {})).status).toBe(401);
  for (let i = 0; i < 20; i++) {
    await server.call("GET", `/sandboxes/no-${i}`);
    await server.app.request(`/nowhere-${i}`, {}, {});
  }
  const metrics = await scrape();
  expect(metrics).not.toContain("no-1");
  expect(metrics).not.toContain("nowhere");
  expect(
    valueIn(metrics, 'holdfast_requests_total{method="GET",route="/v1/sandboxes/{id}",status="404"}'),
  ).toBe(20);
});

test("one line for each operation, with what was done and to which sandbox", async () => {
  await forgetLines();
  const { headers } = await server.call("POST", "/sandboxes/two/exec", { body: { command: "hello" } });
  const { body: two } = await server.call("GET", "/sandboxes/two");
  await server.call("GET", "/sandboxes/nobody");
  await server.app.request("/healthz", {}, {});
  const [exec, get, refused, ...rest] = await allLines();
  expect(exec).toEqual({
    request: headers.get("Holdfast-Request-Id"),
    op: "exec",
    status: 200,
    sandbox: two.id,
    generation: 1,
    ms: expect.any(Number),
    bytesIn: 0,
    bytesOut: expect.any(Number),
  });
  expect(get).toMatchObject({ op: "getSandbox", sandbox: two.id, status: 200 });
  expect(refused).toMatchObject({ op: "getSandbox", sandbox: "nobody", status: 404, code: "not_found" });
  expect(rest).toEqual([]);
});

test("a stream is one operation until its last byte, also if its client leaves", async () => {
  await forgetLines();
  using socket = Bun.serve({ port: 0, fetch: (request) => server.app.fetch(request, {}) });
  const follow = async (name: string) => {
    const url = `http://localhost:${socket.port}/v1/sandboxes/${name}/events?follow=true`;
    const answer = await fetch(url, { headers: { Authorization: "Bearer token" } });
    return answer.body as ReadableStream<Uint8Array>;
  };
  const streams = () => lines().filter(({ op }) => op === "listEvents");
  const ended = async (count: number) => {
    while (streams().length < count) await Bun.sleep(2);
    return streams().at(-1);
  };
  const leaver = (await follow("two")).getReader();
  await leaver.read();
  expect(valueIn(await scrape(), "holdfast_open_streams")).toBe(1);
  expect(streams()).toEqual([]);
  await leaver.cancel();
  expect(await ended(1)).toMatchObject({ status: 200, left: true, bytesOut: expect.any(Number) });

  await server.call("POST", "/sandboxes", { body: { name: "short" } });
  const whole = new Response(await follow("short")).text();
  await server.call("DELETE", "/sandboxes/short?wait=5");
  const bytesOut = (await whole).length;
  expect(await ended(2)).toMatchObject({ status: 200, bytesOut });
  expect(streams()[1]).not.toHaveProperty("left");
  expect(valueIn(await scrape(), "holdfast_open_streams")).toBe(0);
});

test("the trace that a client sends is in the line; what is no trace is not", async () => {
  await forgetLines();
  const trace = "0af7651916cd43dd8448eb211c80319c";
  for (const traceparent of [
    `00-${trace}-b7ad6b7169203331-01`,
    "00-nonsense",
    `ff-${trace}-b7ad6b7169203331-01`,
  ])
    await server.call("GET", "/sandboxes/two", { headers: { traceparent } });
  expect((await allLines()).map((line) => line.trace)).toEqual([trace, undefined, undefined]);
});

test("no token, command, environment or content of a file is ever logged", async () => {
  await forgetLines();
  const secrets = {
    token: "Zx81-wrong-token",
    env: "Zx82-environment",
    command: "Zx83-command",
    file: "Zx84-content",
    path: "Zx85-path",
    claim: "Zx86-claim",
  };
  const bad = { Authorization: `Bearer ${secrets.token}` };
  await server.call("GET", "/sandboxes/two", { headers: bad });
  await server.call("POST", "/sandboxes", { body: { name: "three", env: { KEY: secrets.env } } });
  await server.call("POST", "/sandboxes", { body: { name: secrets.env, env: { "A B": secrets.env } } });
  const body = { command: secrets.command, env: { KEY: secrets.env }, stdin: secrets.file };
  await server.call("POST", "/sandboxes/three/exec", { body });
  await server.call("POST", "/sandboxes/three/exec", { body: { ...body, colour: secrets.env } });
  await server.call("POST", "/sandboxes/three/exec", { body, headers: { "Holdfast-Claim": secrets.claim } });
  await server.call("PUT", `/sandboxes/three/files?path=/${secrets.path}`, { body: secrets.file });
  await server.call("GET", `/sandboxes/${secrets.path}/files?path=/${secrets.path}`);
  await server.call("DELETE", "/sandboxes/three?wait=5");
  expect(await allLines()).toHaveLength(9);
  const told = JSON.stringify(server.lines);
  expect(Object.values(secrets).filter((secret) => told.includes(secret))).toEqual([]);
  expect(told).not.toContain("Bearer");
  const metrics = await scrape();
  expect(Object.values(secrets).filter((secret) => metrics.includes(secret))).toEqual([]);
});
