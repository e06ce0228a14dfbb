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
