import { timingSafeEqual } from "node:crypto";
import { carriedBySubprotocols, HoldfastError } from "@holdfast/protocol";
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app.ts";
import { isFromOwnPage } from "../dashboard/same-origin.ts";
import type { Sessions } from "../dashboard/session.ts";

/**
 * A bearer token on the TCP port, or, where `sessions` are taken, that of a browser that showed it once. The unix socket needs none: its file mode
 * lets only its owner in.
 */
export function bearerAuth(token: () => string, sessions?: Sessions): MiddlewareHandler<AppEnv> {
  return (c, next) => {
    const carried = given(c.req.raw.headers);
    if (c.env.trusted !== true && !isToken(carried, token())) {
      const isSignedIn = carried === "" && sessions?.has(c.req.raw.headers);
      if (!isSignedIn) throw unauthenticated(carried);
      if (!isFromOwnPage(c.req.raw)) throw fromElsewhere();
    }
    return next();
  };
}

/** Both sides are hashed first, so that neither content nor length can be told from the time it takes. */
export function isToken(given: string, token: string): boolean {
  return timingSafeEqual(Bun.SHA256.hash(given), Bun.SHA256.hash(token));
}

/** A page cannot set a header on a WebSocket: there the token is among the subprotocols. */
function given(headers: Headers): string {
  const bearer = headers.get("authorization")?.match(/^Bearer (.+)$/i)?.[1];
  return bearer ?? carriedBySubprotocols(headers.get("sec-websocket-protocol"), "bearer") ?? "";
}

function unauthenticated(carried: string): HoldfastError {
  const message = carried === "" ? "this call needs the server's token" : "this is not the server's token";
  return new HoldfastError("unauthenticated", message, {
    hint: "send `Authorization: Bearer TOKEN`; the token is in the file `token` in the server's data dir",
    started: "no",
  });
}

function fromElsewhere(): HoldfastError {
  return new HoldfastError("forbidden", "another site's page may not act for who is signed in here", {
    hint: "use the server's own page, or send `Authorization: Bearer TOKEN`",
    started: "no",
  });
}
