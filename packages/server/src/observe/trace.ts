import { AsyncLocalStorage } from "node:async_hooks";

/** Where a span is in its trace, as it travels in a `traceparent` header. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether somebody wants to see this trace. It is passed on either way. */
  readonly sampled: boolean;
}

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** One thing that was done, when it is over. Times in ms since 1970, with fractions. */
export interface FinishedSpan extends SpanContext {
  readonly parentId: string | undefined;
  readonly name: string;
  readonly kind: "server" | "client" | "internal";
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly error: string | undefined;
}

type Exporter = (span: FinishedSpan) => void;

interface SpanOptions extends Pick<FinishedSpan, "name" | "kind"> {
  readonly attributes?: Attributes;
  readonly startedAt?: number;
}

/** Makes spans. There is one only where traces are asked for; without one, nothing of this is ever called. */
export class Tracer {
  readonly #export: Exporter;
  readonly #running = new AsyncLocalStorage<Span>();

  constructor(exporter: Exporter) {
    this.#export = exporter;
  }

  /** A request's span, in the trace of whoever sent it. */
  root(parent: SpanContext | undefined, options: SpanOptions): Span {
    return new Span(parent, options, this.#export);
  }

  /** Does it with this span around everything that it starts. */
  run<T>(span: Span, work: () => T): T {
    return this.#running.run(span, work);
  }

  /**
   * A span within the running one. Work that goes on after its request was answered has none: a connection that was
   * opened then may live for days.
   */
  async within<T>(options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T> {
    const parent = this.#running.getStore();
    if (parent === undefined || parent.isOver) return work(undefined);
    const span = new Span(parent.context, options, this.#export, () => parent.isOver);
    try {
      return await this.#running.run(span, () => work(span));
    } catch (error) {
      span.failed(error instanceof Error ? error.name : "error");
      throw error;
    } finally {
      span.end();
    }
  }

  /** What took so long within the running span, and ended just now. */
  was({ ms, ...options }: SpanOptions & { readonly ms: number }): void {
    const parent = this.#running.getStore();
    if (parent === undefined || parent.isOver) return;
    new Span(parent.context, { ...options, startedAt: epochMs() - ms }, this.#export).end();
  }
}

export class Span {
  readonly context: SpanContext;
  readonly #parentId: string | undefined;
  readonly #kind: FinishedSpan["kind"];
  readonly #startedAt: number;
  readonly #export: Exporter;
  readonly #isWithinOver: () => boolean;
  #name: string;
  #attributes: Attributes;
  #error: string | undefined;
  #ended = false;

  constructor(
    parent: SpanContext | undefined,
    options: SpanOptions,
    exporter: Exporter,
    isWithinOver = () => false,
  ) {
    this.context = {
      traceId: parent?.traceId ?? hex(16),
      spanId: hex(8),
      sampled: parent?.sampled ?? true,
    };
    this.#parentId = parent?.spanId;
    this.#name = options.name;
    this.#kind = options.kind;
    this.#attributes = options.attributes ?? {};
    this.#startedAt = options.startedAt ?? epochMs();
    this.#export = exporter;
    this.#isWithinOver = isWithinOver;
  }

  get isOver(): boolean {
    return this.#ended || this.#isWithinOver();
  }

  rename(name: string): void {
    this.#name = name;
  }

  set(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  failed(error: string): void {
    this.#error = error;
  }

  /** May be called twice. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.context.sampled) return;
    this.#export({
      ...this.context,
      parentId: this.#parentId,
      name: this.#name,
      kind: this.#kind,
      startedAt: this.#startedAt,
      endedAt: epochMs(),
      attributes: this.#attributes,
      error: this.#error,
    });
  }
}

/** W3C Trace Context, version 00, and what later ones add at the end. */
export function parseTraceparent(text: string | undefined): SpanContext | undefined {
  const match = text?.match(
    /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-|$)/,
  );
  if (match === undefined || match === null) return undefined;
  const [, traceId = "", spanId = "", flags = ""] = match;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentOf({ traceId, spanId, sampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

function hex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
}
