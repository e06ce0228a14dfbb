import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import type { App, AppEnv } from "../app.ts";
import { newRequestId } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Meters } from "../observe/meters.ts";
import { parseTraceparent, type Tracer } from "../observe/trace.ts";
import { Operation } from "./operation.ts";

/** Around everything: gives each request its id and its `Operation`, and sees it to its end. */
export function observed(options: {
  app: App;
  log: Log;
  meters: Meters;
  tracer: Tracer | undefined;
}): MiddlewareHandler<AppEnv> {
  const { log, meters, tracer } = options;
  const names = new Names(options.app);
  const later = new Later();
  return async (c, next) => {
    if (c.req.path === "/metrics") await later.now();
    const requestId = newRequestId();
    const sender = parseTraceparent(c.req.header("traceparent"));
    const span = tracer?.root(sender, { name: "request", kind: "server" });
    const trace = span?.context.traceId ?? sender?.traceId;
    const operation = new Operation({ requestId, span, tracer, trace, log, meters });
    c.set("operation", operation);
    c.set("log", log);
    c.header("Holdfast-Request-Id", requestId);
    operation.received(lengthOf(c.req.header("content-length")));
    meters.inFlight.add(1);
    try {
      await (tracer === undefined || span === undefined ? next() : tracer.run(span, next));
    } finally {
      meters.inFlight.add(-1);
    }
    operation.begunToAnswer();
    const tell = () => {
      const path = templateOf(c);
      const { method } = c.req;
      askedFor(c, operation);
      const status = operation.isSocket ? 101 : c.res.status;
      operation.answered({ request: requestId, op: names.of(method, path), status }, { method, path });
    };
    // Whoever reads `body` makes a stream of it, which is fifty times the work.
    if (c.res.headers.get("content-type")?.startsWith("application/json"))
      return seeOutLater(c, { operation, tell, later });
    tell();
    if (!operation.isSocket) seeOut(c, operation, meters);
  };
}

/** Of an answer that is there as a whole. */
function seeOutLater(
  c: Context<AppEnv>,
  { operation, tell, later }: { operation: Operation; tell: () => void; later: Later },
): void {
  const copy = c.res.clone();
  later.do(async () => {
    tell();
    operation.sent((await copy.blob()).size);
    operation.end();
  });
}

/** How long what is told of an answer may wait: nobody sees it sooner, and a burst of calls is over. */
const LATER_MS = 5;

/** What nobody should wait for. Not even when the answer is sent: who gets it may have to wait for our core. */
class Later {
  #work: (() => Promise<void>)[] = [];

  do(work: () => Promise<void>): void {
    if (this.#work.push(work) === 1) setTimeout(() => this.now(), LATER_MS);
  }

  async now(): Promise<void> {
    await Promise.all(this.#work.splice(0).map((work) => work()));
  }
}

/** Until the last byte of an answer that streams. */
function seeOut(c: Context<AppEnv>, operation: Operation, meters: Meters): void {
  const answer = c.res;
  if (answer.body === null) {
    operation.end();
    return;
  }
  meters.openStreams.add(1);
  let isOver = false;
  // Bun cancels a body that has ended, too.
  const over = (how: "end" | "left") => {
    if (isOver) return;
    isOver = true;
    meters.openStreams.add(-1);
    operation[how]();
  };
  // Hono would copy the headers of the one that is replaced.
  c.res = undefined;
  c.res = new Response(
    counted(answer.body, (bytes) => operation.sent(bytes), over),
    answer,
  );
}

/** The same bytes. Says how many as they pass, and once how it ended. */
export function counted(
  body: ReadableStream<Uint8Array>,
  passed: (bytes: number) => void,
  over: (how: "end" | "left") => void = () => {},
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          over("end");
          controller.close();
          return;
        }
        passed(value.byteLength);
        controller.enqueue(value);
      } catch (error) {
        over("left");
        throw error;
      }
    },
    cancel(reason) {
      over("left");
      return reader.cancel(reason);
    },
  });
}

/** `/v1/sandboxes/{id}`, whatever the id. What no route matches has the name of the widest. */
function templateOf(c: Context<AppEnv>): string {
  return routePath(c, -1).replace(/:(\w+)(\{[^}]*\})?/g, "{$1}");
}

/** A name that nothing could have is not repeated. */
function askedFor(c: Context<AppEnv>, operation: Operation): void {
  const id = c.req.path.match(/^\/v1\/sandboxes\/(?:by-name\/)?([a-z0-9][a-z0-9-]{0,62})(?:\/|$)/)?.[1];
  if (id !== undefined) operation.askedFor(id);
}

function lengthOf(header: string | undefined): number {
  return /^\d{1,15}$/.test(header ?? "") ? Number(header) : 0;
}

/** The names that the OpenAPI document has for routes. */
class Names {
  readonly #app: App;
  #names: Map<string, string> | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  /** The routes are complete when the first request comes. */
  of(method: string, path: string): string {
    this.#names ??= new Map(
      this.#app.openAPIRegistry.definitions.flatMap((one) =>
        one.type === "route" && one.route.operationId !== undefined && one.route.path.startsWith("/v1/")
          ? [[`${one.route.method.toUpperCase()} ${one.route.path}`, one.route.operationId]]
          : [],
      ),
    );
    return this.#names.get(`${method} ${path}`) ?? path;
  }
}
