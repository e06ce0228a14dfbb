import { expect, test } from "bun:test";
import { silentLog } from "../log.ts";
import { OtlpExporter } from "./otlp.ts";
import { startTracing } from "./start-tracing.ts";
import { type FinishedSpan, parseTraceparent, Tracer, traceparentOf } from "./trace.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const id = "b7ad6b7169203331";

test.each([
  [`00-${trace}-${id}-01`, { traceId: trace, spanId: id, sampled: true }],
  [`00-${trace}-${id}-02`, { traceId: trace, spanId: id, sampled: false }],
  [`01-${trace}-${id}-01-more`, { traceId: trace, spanId: id, sampled: true }],
  [`ff-${trace}-${id}-01`, undefined],
  [`00-${"0".repeat(32)}-${id}-01`, undefined],
  [`00-${trace}-${"0".repeat(16)}-01`, undefined],
  [`00-${trace.toUpperCase()}-${id}-01`, undefined],
  [`00-${trace}-${id}-01x`, undefined],
  ["", undefined],
])("traceparent %s", (text, context) => {
  expect(parseTraceparent(text)).toEqual(context);
});

test("a span within another, what failed, and nothing after the request was answered", async () => {
  const spans: FinishedSpan[] = [];
  const tracer = new Tracer((span) => spans.push(span));
  const root = tracer.root(undefined, { name: "request", kind: "server" });
  const later = Promise.withResolvers<void>();
  const { background } = await tracer.run(root, async () => {
    const failed = tracer.within({ name: "child", kind: "client" }, async (span) => {
      expect(traceparentOf(span?.context ?? root.context)).toContain(root.context.traceId);
      tracer.was({ name: "grandchild", kind: "internal", ms: 5 });
      throw new TypeError("no");
    });
    await expect(failed).rejects.toThrow("no");
    const background = later.promise.then(() =>
      tracer.within({ name: "late", kind: "internal" }, async () => 7),
    );
    return { background };
  });
  root.end();
  root.end();
  later.resolve();
  expect(await background).toBe(7);
  expect(spans.map(({ name, error }) => [name, error])).toEqual([
    ["grandchild", undefined],
    ["child", "TypeError"],
    ["request", undefined],
  ]);
  const [grandchild, child] = spans;
  expect([grandchild?.parentId, child?.parentId]).toEqual([child?.spanId, root.context.spanId]);
});

test("without the variables there is no tracer", async () => {
  expect(await startTracing({}, silentLog)).toBeUndefined();
  const off = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:1", OTEL_SDK_DISABLED: "true" };
  expect(await startTracing(off, silentLog)).toBeUndefined();
});

test("a collector that is away costs nobody anything, and gets what waited when it is back", async () => {
  let status = 503;
  const batches: number[] = [];
  // A stand-in for a collector.
  using collector = Bun.serve({
    port: 0,
    async fetch(request) {
      const { resourceSpans } = (await request.json()) as {
        resourceSpans: { scopeSpans: { spans: object[] }[] }[];
      };
      if (status === 200) batches.push(resourceSpans[0]?.scopeSpans[0]?.spans.length ?? 0);
      return new Response(null, { status });
    },
  });
  const url = collector.url.href;
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const exporter = new OtlpExporter({ url, headers: {}, serviceName: "test", log });
  const tracer = new Tracer(exporter.export);
  for (let i = 0; i < 10_000; i++) tracer.root(undefined, { name: "x", kind: "server" }).end();
  await exporter.close();
  expect(new Set(warnings)).toEqual(new Set(["traces could not be sent"]));
  status = 200;
  await exporter.close();
  expect(batches).toEqual(Array.from({ length: 8 }, () => 512));
});
