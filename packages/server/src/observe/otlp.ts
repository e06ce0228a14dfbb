import type { Log } from "../log.ts";
import type { Attributes, FinishedSpan } from "./trace.ts";

/** Sent together; a busy server has this many in a moment. */
const BATCH = 512;
const EVERY_MS = 2_000;
/** While the collector is away, so many wait. What comes then is dropped, and said. */
const MAX_WAITING = 4_096;
const SEND_MS = 10_000;

export interface OtlpOptions {
  /** The address that takes traces: `…/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly log: Log;
}

/**
 * Sends spans to a collector: OTLP over HTTP, as JSON. The official exporter and what it needs are 18 MB, and this is
 * the part of them that a server without other instruments uses.
 */
export class OtlpExporter {
  readonly #options: OtlpOptions;
  #waiting: FinishedSpan[] = [];
  #dropped = 0;
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(options: OtlpOptions) {
    this.#options = options;
  }

  /** Never waits and never fails: a trace is not worth a request. */
  readonly export = (span: FinishedSpan): void => {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= BATCH) void this.#flush();
    else this.#timer ??= setTimeout(() => void this.#flush(), EVERY_MS).unref();
  };

  /** Sends what waits. May be called twice. */
  async close(): Promise<void> {
    await this.#sending;
    await this.#flush();
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      try {
        await this.#send(batch);
      } catch (error) {
        this.#options.log.warn("traces could not be sent", { error: String(error), dropped: this.#dropped });
        this.#dropped = 0;
        this.#timer ??= setTimeout(() => void this.#flush(), EVERY_MS * 5).unref();
        return;
      }
      this.#waiting = this.#waiting.slice(batch.length);
    }
  }

  async #send(batch: readonly FinishedSpan[]): Promise<void> {
    const { url, headers, serviceName } = this.#options;
    const answer = await fetch(url, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify(requestOf(batch, serviceName)),
      signal: AbortSignal.timeout(SEND_MS),
    });
    await answer.body?.cancel();
    // What it does not take it will not take the next time: only a collector that is away or busy is asked again.
    if (answer.status >= 500 || answer.status === 429)
      throw new Error(`the collector answered ${answer.status}`);
  }
}

function requestOf(batch: readonly FinishedSpan[], serviceName: string): object {
  const resource = { attributes: attributesOf({ "service.name": serviceName }) };
  const scopeSpans = [{ scope: { name: "holdfast" }, spans: batch.map(spanOf) }];
  return { resourceSpans: [{ resource, scopeSpans }] };
}

const kinds = { internal: 1, server: 2, client: 3 } as const;

function spanOf(span: FinishedSpan): object {
  const { traceId, spanId, parentId, name, kind, attributes, error } = span;
  return {
    ...{ traceId, spanId, name, kind: kinds[kind] },
    ...(parentId !== undefined && { parentSpanId: parentId }),
    startTimeUnixNano: nanoseconds(span.startedAt),
    endTimeUnixNano: nanoseconds(span.endedAt),
    attributes: attributesOf(attributes),
    status: error === undefined ? {} : { code: 2, message: error },
  };
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: typedValue(value) }));
}

function typedValue(value: Attributes[string]): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** As text: they are more than a number holds exactly. */
function nanoseconds(ms: number): string {
  return `${Math.floor(ms)}${String(Math.floor((ms % 1) * 1e6)).padStart(6, "0")}`;
}
