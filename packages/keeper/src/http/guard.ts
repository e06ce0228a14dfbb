import { HoldfastError } from "@holdfast/protocol/errors";
import { CLAIM_FENCE_HEADER, FENCE_HEADER } from "@holdfast/protocol/keeper-start";
import { type Checker, tellIssues } from "@holdfast/protocol/plain-check";
import type { Admission } from "../admission.ts";
import type { Door } from "../lifecycle/door.ts";

/** One request, checked; what a handler needs of it. */
export interface Call {
  readonly request: Request;
  readonly server: KeeperServer;
  /** A part of the path, such as `:id`. */
  param(name: string): string;
  /** The JSON body; throws `invalid_argument` with every issue. An absent body reads as `{}`. */
  body<T>(shape: Checker<T>): Promise<T>;
  query<T>(shape: Checker<T>): T;
  /** Throws `claim_lost` if the caller's claim was taken over since. For what goes on after the first check. */
  checkClaim(): void;
  /** The request counts as not answered until this settles: for bytes that are still on their way. */
  busyUntil(over: Promise<unknown>): void;
}

type KeeperServer = Bun.Server<SocketHandler>;

/** What a handler passes as `data` to `server.upgrade`: its own ear at the socket. */
export interface SocketHandler {
  open?(socket: Bun.ServerWebSocket<SocketHandler>): void;
  message(socket: Bun.ServerWebSocket<SocketHandler>, message: string | Buffer): void;
  drain?(socket: Bun.ServerWebSocket<SocketHandler>): void;
  pong?(socket: Bun.ServerWebSocket<SocketHandler>): void;
  close?(socket: Bun.ServerWebSocket<SocketHandler>, code: number, reason: string): void;
}

/** `undefined` only after an upgrade. Throws HoldfastError for what cannot be done. */
export type Handler = (call: Call) => Response | undefined | Promise<Response | undefined>;

export type Method = "GET" | "POST" | "PUT" | "DELETE" | "PATCH";

/** What each surface exports: handlers by path and method. */
export type Routes = Record<string, Partial<Record<Method, Handler>>>;

type BunHandler = (request: Bun.BunRequest, server: KeeperServer) => Promise<Response | undefined>;

// These answer before admission: they are how one is admitted, or turned away.
const BEFORE_ADMISSION: ReadonlySet<string> = new Set(["/v1/keeper", "/v1/admit", "/v1/shutdown"]);

/**
 * Puts the checks that every request passes in front of every handler: secret, fence, admission, and for work the claim
 * and the gate; and errors behind.
 */
export function guarded(routes: Routes, options: { secret: string; admission: Admission; door: Door }) {
  const { admission, door } = options;
  const wanted = Buffer.from(`Bearer ${options.secret}`);
  const guard =
    (path: string, handler: Handler): BunHandler =>
    async (request, server) => {
      const startedAt = performance.now();
      try {
        checkSecret(request, wanted);
        admission.checkFence(request.headers.get(FENCE_HEADER));
        if (!BEFORE_ADMISSION.has(path)) admission.checkAdmitted();
        const leave = door.enter(path, request);
        const busy: Promise<unknown>[] = [];
        try {
          return timed(request, await handler(callOf({ request, server, door, busy })), startedAt);
        } finally {
          if (busy.length === 0) leave();
          else void Promise.allSettled(busy).then(leave);
        }
      } catch (error) {
        return errorResponse(error);
      }
    };
  const guardedMethods = (path: string, methods: Routes[string]) =>
    Object.fromEntries(Object.entries(methods).map(([method, handler]) => [method, guard(path, handler)]));
  return Object.fromEntries(
    Object.entries(routes).map(([path, methods]) => [path, guardedMethods(path, methods)]),
  );
}

/** Whoever traces a call is told how long it took here: a keeper has no way to a collector. */
function timed(request: Request, response: Response | undefined, startedAt: number): Response | undefined {
  if (request.headers.has("traceparent"))
    response?.headers.set("Server-Timing", `keeper;dur=${(performance.now() - startedAt).toFixed(3)}`);
  return response;
}

export function errorResponse(error: unknown): Response {
  const known = error instanceof HoldfastError ? error : unexpected(error);
  return Response.json(known.toBody(), { status: known.status });
}

export function noRoute({ method, url }: Request): HoldfastError {
  return new HoldfastError("not_found", `the keeper has no ${method} ${new URL(url).pathname}`, {
    hint: "the server and the keeper may be of different versions",
    started: "no",
  });
}

function unexpected(error: unknown): HoldfastError {
  process.stderr.write(`unexpected error: ${error instanceof Error ? error.stack : String(error)}\n`);
  const message = `the keeper failed: ${error instanceof Error ? error.message : String(error)}`;
  return new HoldfastError("internal", message, { cause: error });
}

function checkSecret(request: Request, wanted: Buffer): void {
  const given = Buffer.from(request.headers.get("Authorization") ?? "");
  if (given.length === wanted.length && crypto.timingSafeEqual(given, wanted)) return;
  throw new HoldfastError("unauthenticated", "the instance's secret is missing or wrong", {
    hint: "only the server that launched this instance has it",
    started: "no",
  });
}

function callOf(parts: {
  request: Bun.BunRequest;
  server: KeeperServer;
  door: Door;
  busy: Promise<unknown>[];
}): Call {
  const { request, server, door, busy } = parts;
  const claim = request.headers.get(CLAIM_FENCE_HEADER);
  const params: Record<string, string> = request.params;
  return {
    request,
    server,
    param: (name) => params[name] ?? "",
    body: async (shape) => parsed(shape, await jsonOf(request), "the request's body"),
    query: (shape) => parsed(shape, Object.fromEntries(new URL(request.url).searchParams), "the query"),
    checkClaim: () => door.checkClaim(claim),
    busyUntil: (over) => busy.push(over),
  };
}

async function jsonOf(request: Request): Promise<unknown> {
  const text = await request.text();
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new HoldfastError("invalid_argument", "the request's body is not JSON", {
      started: "no",
      cause: error,
    });
  }
}

function parsed<T>(shape: Checker<T>, value: unknown, what: string): T {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  throw new HoldfastError("invalid_argument", `${what} is not valid: ${tellIssues(issues)}`, {
    started: "no",
    details: { issues: issues.map(({ path, message }) => ({ path: path.join("."), message })) },
  });
}
