import type { Log } from "../log.ts";
import type { Tracer } from "./trace.ts";

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what waits. */
  close(): Promise<void>;
}

/** Traces, if OpenTelemetry's own variables ask for them. Without those, none of its code is loaded. */
export async function startTracing(env: NodeJS.ProcessEnv, log: Log): Promise<Tracing | undefined> {
  const url = tracesUrl(env);
  if (url === undefined || env.OTEL_SDK_DISABLED === "true" || env.OTEL_TRACES_EXPORTER === "none")
    return undefined;
  const [{ Tracer }, { OtlpExporter }] = await Promise.all([import("./trace.ts"), import("./otlp.ts")]);
  const headers = headersOf(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? env.OTEL_EXPORTER_OTLP_HEADERS ?? "");
  const serviceName = env.OTEL_SERVICE_NAME || "holdfast";
  const exporter = new OtlpExporter({ url, headers, serviceName, log });
  return { tracer: new Tracer(exporter.export), close: () => exporter.close() };
}

/** The one for traces is taken as it is; the general one is the root of several. */
function tracesUrl(env: NodeJS.ProcessEnv): string | undefined {
  if (env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const root = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  return root ? `${root.replace(/\/$/, "")}/v1/traces` : undefined;
}

/** `name=value,name=value`, each percent-encoded. */
function headersOf(text: string): Record<string, string> {
  const pairs = text.split(",").map((pair) => pair.split(/=(.*)/s));
  return Object.fromEntries(
    pairs
      .filter(([name]) => name !== undefined && name.trim() !== "")
      .map(([name = "", value = ""]) => [name.trim(), decodeURIComponent(value.trim())]),
  );
}
