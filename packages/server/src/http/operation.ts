import type { Holding } from "@holdfast/core";
import type { CommandState, SessionCommandState } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import type { Meters } from "../observe/meters.ts";
import type { Span, Tracer } from "../observe/trace.ts";

/** What is told of a request when it is over. Nothing of it comes from a body, a query or a header's secret. */
interface Told {
  readonly request: string;
  /** The API's name for it, else its route. */
  readonly op: string;
  readonly status: number;
}

/** One request, from its head to the last byte of its answer: one line in the log, counts, and a span. */
export class Operation {
  readonly requestId: string;
  readonly span: Span | undefined;
  readonly #tracer: Tracer | undefined;
  readonly #trace: string | undefined;
  readonly #log: Log;
  readonly #meters: Meters;
  readonly #startedAt = performance.now();
  #answerMs = 0;
  #bytesIn = 0;
  #bytesOut = 0;
  #sandbox: { sandbox?: string; generation?: number } = {};
  #code: string | undefined;
  #commandMs: number | undefined;
  #told: Told | undefined;
  #isSocket = false;
  #left = false;
  #over = false;
  #ended = false;

  constructor(options: {
    requestId: string;
    span: Span | undefined;
    tracer: Tracer | undefined;
    trace: string | undefined;
    log: Log;
    meters: Meters;
  }) {
    this.requestId = options.requestId;
    this.span = options.span;
    this.#tracer = options.tracer;
    this.#trace = options.trace;
    this.#log = options.log;
    this.#meters = options.meters;
  }

  get ms(): number {
    return performance.now() - this.#startedAt;
  }

  /** What is told of its time ends here, whenever it is told. */
  begunToAnswer(): void {
    this.#answerMs = this.ms;
  }

  /** The sandbox that answered, and which incarnation of it. */
  about({ sandbox }: Pick<Holding, "sandbox">): void {
    this.#sandbox = { sandbox: sandbox.id, generation: sandbox.generation };
  }

  /** The sandbox that was asked for, as far as is known before it answers. */
  askedFor(idOrName: string): void {
    if (this.#sandbox.sandbox === undefined) this.#sandbox = { sandbox: idOrName };
  }

  refused(code: string): void {
    this.#code = code;
    this.#meters.refusals.add(1, code);
  }

  /** A command was run, and took so long itself. */
  ran(state: CommandState | SessionCommandState): void {
    if (state.status === "lost") return;
    this.#commandMs = state.durationMs;
    this.#tracer?.was({ name: "command", kind: "internal", ms: state.durationMs });
  }

  /** It is a WebSocket now, and ends when that does. */
  becameSocket(): void {
    this.#isSocket = true;
    this.#meters.openTerminals.add(1);
  }

  get isSocket(): boolean {
    return this.#isSocket;
  }

  received(bytes: number): void {
    this.#bytesIn += bytes;
    this.#meters.received.add(bytes, this.#isSocket ? "terminal" : "http");
  }

  sent(bytes: number): void {
    this.#bytesOut += bytes;
    this.#meters.sent.add(bytes, this.#isSocket ? "terminal" : "http");
  }

  /** The answer begins. */
  answered(told: Told, route: { method: string; path: string }): void {
    this.#told = told;
    this.#meters.requests.add(1, route.method, route.path, String(told.status));
    const ms = this.#answerMs;
    this.#meters.requestSeconds.observe(ms / 1000, route.method, route.path);
    if (this.#commandMs !== undefined) {
      this.#meters.execSeconds.observe(ms / 1000);
      // A command that was attached to began before this request.
      this.#meters.execOverheadSeconds.observe(Math.max(0, ms - this.#commandMs) / 1000);
    }
    if (this.#over) this.#tell(told);
  }

  /** The client went before the end. */
  left(): void {
    this.#left = true;
    this.end();
  }

  /** Nothing more will be received or sent. May be called twice. */
  end(): void {
    this.#over = true;
    if (this.#told !== undefined) this.#tell(this.#told);
  }

  #tell(told: Told): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#isSocket) this.#meters.openTerminals.add(-1);
    this.#endSpan(told);
    if (!isOperation(told)) return;
    const fields = {
      ...told,
      ...this.#sandbox,
      ...(this.#code !== undefined && { code: this.#code }),
      ms: Math.round(this.ms * 10) / 10,
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
      ...(this.#left && { left: true }),
      ...(this.#trace !== undefined && { trace: this.#trace }),
    };
    if (told.status >= 500) this.#log.warn("request", fields);
    else this.#log.info("request", fields);
  }

  #endSpan({ request, op, status }: Told): void {
    if (this.span === undefined) return;
    const { sandbox, generation } = this.#sandbox;
    this.span.rename(op);
    this.span.set({
      "holdfast.request": request,
      "http.response.status_code": status,
      ...(sandbox !== undefined && { "holdfast.sandbox": sandbox }),
      ...(generation !== undefined && { "holdfast.generation": generation }),
      ...(this.#code !== undefined && { "error.type": this.#code }),
    });
    if (status >= 500) this.span.failed(this.#code ?? String(status));
    this.span.end();
  }
}

/** Pages, probes and scrapes are counted, and are not worth a line. */
function isOperation({ op }: Told): boolean {
  return !op.startsWith("/") || op.startsWith("/v1") || op.startsWith("/mcp");
}
