import { HoldfastError } from "@holdfast/protocol";
import type { Context, MiddlewareHandler } from "hono";
import type { AppEnv } from "../app.ts";

/** What a page may read of an answer, beside its body. */
const EXPOSED = [
  ...["Holdfast-Generation", "Holdfast-Continuity", "Holdfast-Request-Id", "Holdfast-File-Mode"],
  ...["Holdfast-Content-Length", "ETag", "Content-Range", "Retry-After"],
].join(", ");
// As long as any browser remembers an answer.
const PREFLIGHT_SECONDS = "7200";

/**
 * Which pages may call: the server's own, and those of the origins that the operator named. The others are refused
 * before anything is done, WebSockets too, which browsers do not check by themselves. A program that is no browser
 * names no origin. A page elsewhere never gets to use a cookie: it must have the token.
 */
export function originPolicy(allowed: readonly string[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const origin = c.req.header("origin");
    if (origin === undefined || isOwn(origin, c.req.header("host"))) return next();
    if (!allowed.includes(origin) && !allowed.includes("*")) throw notAllowed(origin);
    if (isPreflight(c)) return answerPreflight(c, origin);
    await next();
    c.header("Access-Control-Allow-Origin", origin);
    c.header("Access-Control-Expose-Headers", EXPOSED);
    c.header("Vary", "Origin", { append: true });
  };
}

/** By host and port alone: a proxy in front may have taken the TLS off. */
function isOwn(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}

function isPreflight(c: Context<AppEnv>): boolean {
  return c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;
}

function answerPreflight(c: Context<AppEnv>, origin: string): Response {
  const wanted = c.req.header("access-control-request-headers");
  return c.body(null, 204, {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    ...(wanted !== undefined && { "Access-Control-Allow-Headers": wanted }),
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    Vary: "Origin, Access-Control-Request-Headers",
  });
}

function notAllowed(origin: string): HoldfastError {
  return new HoldfastError("forbidden", `pages of ${origin} may not call this server`, {
    hint: `if they should, start the server with --allow-origin ${origin}`,
    details: { origin },
    started: "no",
  });
}
