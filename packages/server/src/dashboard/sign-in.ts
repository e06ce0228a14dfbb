import { HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppEnv, newApp } from "../app.ts";
import { isToken } from "../http/auth.ts";
import { invalidArgument } from "../http/errors.ts";
import { isFromOwnPage } from "./same-origin.ts";
import type { Sessions } from "./session.ts";
import type { SignInCodes } from "./sign-in-codes.ts";

const SignIn = z.union([
  z.strictObject({ token: z.string().max(1000) }),
  z.strictObject({ code: z.string().max(100) }),
]);

/** Longer than any token. */
const MAX_BODY_BYTES = 4096;

/** For the dashboard alone: the token is sent once, and then a cookie that no script can read stands for it. */
export function signInRoutes(deps: { token: () => string; sessions: Sessions; codes: SignInCodes }): App {
  const { token, sessions, codes } = deps;
  const app = newApp();

  app.use("/session", async (c, next) => {
    if (!isFromOwnPage(c.req.raw)) throw fromElsewhere();
    c.header("Cache-Control", "no-store");
    await next();
  });

  app.get("/session", (c) => {
    const signedIn = sessions.has(c.req.raw.headers);
    // Who comes back within its time stays.
    if (signedIn) c.header("Set-Cookie", sessions.begin(over(c)));
    return c.json({ signedIn }, 200);
  });

  app.post("/session", async (c) => {
    const given = await bodyOf(c);
    if ("token" in given && !isToken(given.token.trim(), token())) throw wrongToken();
    if ("code" in given && !codes.take(given.code)) throw wrongCode();
    c.header("Set-Cookie", sessions.begin(over(c)));
    return c.json({ signedIn: true }, 200);
  });

  app.delete("/session", (c) => {
    c.header("Set-Cookie", sessions.end(over(c)));
    return c.json({ signedIn: false }, 200);
  });

  return app;
}

async function bodyOf(c: Context<AppEnv>): Promise<z.infer<typeof SignIn>> {
  const length = Number(c.req.header("content-length") ?? Number.NaN);
  if (!(length <= MAX_BODY_BYTES)) throw wrongToken();
  const parsed = SignIn.safeParse(await c.req.json().catch(() => undefined));
  if (!parsed.success) throw invalidArgument(parsed.error);
  return parsed.data;
}

/** Whether the browser came by TLS, which may have ended in front of us. */
function over(c: Context<AppEnv>): { secure: boolean } {
  return { secure: (c.req.header("x-forwarded-proto") ?? new URL(c.req.url).protocol).startsWith("https") };
}

function wrongToken(): HoldfastError {
  return new HoldfastError("unauthenticated", "this is not the server's token", {
    hint: "it is in the file `token` in the server's data dir; the server says where that is when it starts",
    started: "no",
  });
}

function wrongCode(): HoldfastError {
  return new HoldfastError("unauthenticated", "this link was used before, or its time is over", {
    hint: "`holdfast dashboard` prints another one",
    started: "no",
  });
}

function fromElsewhere(): HoldfastError {
  return new HoldfastError("forbidden", "only the server's own page can sign in", {
    hint: "programs send `Authorization: Bearer TOKEN`",
    started: "no",
  });
}
