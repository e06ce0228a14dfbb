import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

setDefaultTimeout(60_000);

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

/** A stand-in for a collector: it takes what is sent to it, and keeps it. */
class Collector {
  readonly spans: SentSpan[] = [];
  readonly heads: { path: string; key: string | null; service: unknown }[] = [];
  readonly #server = Bun.serve({
    port: 0,
    fetch: async (request) => {
      const { resourceSpans } = (await request.json()) as {
        resourceSpans: { resource: { attributes: unknown[] }; scopeSpans: { spans: SentSpan[] }[] }[];
      };
      const path = new URL(request.url).pathname;
      const service = resourceSpans[0]?.resource.attributes;
      this.heads.push({ path, key: request.headers.get("x-key"), service });
      for (const { scopeSpans } of resourceSpans)
        this.spans.push(...scopeSpans.flatMap(({ spans }) => spans));
      return Response.json({});
    },
  });

  get url(): string {
    return this.#server.url.href;
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }
}

let collector: Collector;
let server: TestServer;
beforeAll(async () => {
  collector = new Collector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20b" };
  server = await TestServer.start({ env });
});
afterAll(async () => {
  await server.dispose();
  await collector.close();
});

const trace = "0af7651916cd43dd8448eb211c80319c";
const sender = "b7ad6b7169203331";

test("a terminal is one operation, from its first viewer's coming to his going", async () => {
  const sandbox = await Sandbox.create({ name: "watched", network: "none" }, server.at);
  const terminal = await sandbox.terminal({ id: "main" });
  await terminal.write("echo Zx90-$((40 + 2))\n");
  let text = "";
  for await (const event of terminal) {
    if (event.type === "output") text += new TextDecoder().decode(event.bytes);
    if (text.includes("Zx90-42")) break;
  }
  expect(await metric("holdfast_open_terminals")).toBe(1);
  await terminal.close();
  while (!server.output.includes('"op":"connectTerminal"')) await Bun.sleep(5);
  const line = server.output.split("\n").find((one) => one.includes('"op":"connectTerminal"')) ?? "{}";
  const told = JSON.parse(line);
  expect(told).toMatchObject({ status: 101, sandbox: sandbox.id });
  expect([told.bytesIn > 10, told.bytesOut > 20]).toEqual([true, true]);
  expect(await metric("holdfast_open_terminals")).toBe(0);
  expect(await metric('holdfast_sent_bytes_total{kind="terminal"}')).toBeGreaterThanOrEqual(told.bytesOut);
  expect(server.output).not.toContain("Zx90");
});

async function metric(series: string): Promise<number> {
  const metrics = await (await server.fetch("/metrics")).text();
  const line = metrics.split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

test("one trace from the SDK over the server to the keeper, and into the log; nothing of it is a secret", async () => {
  let flags = "01";
  const traceparent = () => `00-${trace}-${sender}-${flags}`;
  const at = { ...server.at, traceparent };
  const sandbox = await Sandbox.create({ name: "traced", network: "none", env: { KEY: "Zx91-env" } }, at);
  await sandbox.exec("echo Zx92-command; sleep 0.05");
  flags = "00";
  await sandbox.exec("echo not sampled");
  await sandbox.delete();
  const untraced = await Sandbox.create({ name: "untraced", network: "none" }, server.at);
  // What is left is sent before the server ends.
  await server.signal("SIGTERM");

  const ours = collector.spans.filter(({ traceId }) => traceId === trace);
  const named = (name: string) => ours.filter((span) => span.name === name);
  const [create] = named("createSandbox");
  const [exec, ...more] = named("exec");
  expect([create?.parentSpanId, exec?.parentSpanId, more.length]).toEqual([sender, sender, 0]);
  const [wake] = named("wake");
  expect(wake?.parentSpanId).toBe(create?.spanId);
  expect(named("local launch")[0]?.parentSpanId).toBe(wake?.spanId);
  const [call] = named("keeper call POST /exec");
  expect(call?.parentSpanId).toBe(exec?.spanId);
  expect(named("keeper POST /exec")[0]?.parentSpanId).toBe(call?.spanId);
  const [command] = named("command");
  expect(command?.parentSpanId).toBe(exec?.spanId);
  expect(msOf(command)).toBeGreaterThanOrEqual(50);
  expect(msOf(exec)).toBeGreaterThanOrEqual(msOf(command));

  const others = new Set(collector.spans.map(({ traceId }) => traceId));
  others.delete(trace);
  expect(others.size).toBeGreaterThan(0);
  expect(untraced.name).toBe("untraced");
  const service = [{ key: "service.name", value: { stringValue: "holdfast" } }];
  expect(collector.heads[0]).toEqual({ path: "/v1/traces", key: "a b", service });

  const lines = server.output.split("\n").filter((line) => line.includes(`"trace":"${trace}"`));
  expect(lines.filter((line) => line.includes('"op":"exec"'))).toHaveLength(2);
  const told = server.output + JSON.stringify(collector.spans);
  for (const secret of ["Zx91", "Zx92", server.token]) expect(told).not.toContain(secret);
});

function msOf(span: SentSpan | undefined): number {
  return Number(BigInt(span?.endTimeUnixNano ?? 0) - BigInt(span?.startTimeUnixNano ?? 0)) / 1e6;
}
