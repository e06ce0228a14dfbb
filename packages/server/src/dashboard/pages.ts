import type { Context } from "hono";
import { type App, type AppEnv, newApp } from "../app.ts";
import type { Asset } from "./assets.ts";

/**
 * Nothing from anywhere else, no script in the page itself, and no page around it. Style elements are allowed: the
 * terminal makes its own.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The page's own addresses: what is shown there is decided in the browser. */
const PAGES = ["/", "/sandboxes/:id", "/sandboxes/:id/:tab", "/operator"];

/** The dashboard, from the files that `npm start` built. */
export function dashboardPages(assets: ReadonlyMap<string, Asset> | undefined): App {
  const app = newApp();
  const index = assets?.get("index.html");
  for (const path of PAGES) {
    app.get(path, (c) => (index === undefined ? notBuilt(c) : send(c, index, "no-cache")));
  }
  // The names have a hash of the content in them: what was once loaded is good for ever.
  app.get("/assets/:name", (c) => {
    const asset = assets?.get(c.req.param("name"));
    return asset === undefined ? c.notFound() : send(c, asset, "public, max-age=31536000, immutable");
  });
  return app;
}

function send(c: Context<AppEnv>, { type, bytes }: Asset, cache: string): Response {
  const accepted = c.req.header("accept-encoding") ?? "";
  const encoding = ["br", "gzip"].find((one) => accepted.includes(one) && bytes[one] !== undefined);
  if (encoding !== undefined) c.header("Content-Encoding", encoding);
  c.header("Vary", "Accept-Encoding");
  c.header("Cache-Control", cache);
  guard(c);
  c.header("Content-Type", type);
  return c.body(bytes[encoding ?? "identity"] ?? "");
}

function notBuilt(c: Context<AppEnv>): Response {
  guard(c);
  return c.html(NOT_BUILT, 503);
}

function guard(c: Context<AppEnv>): void {
  c.header("Content-Security-Policy", POLICY);
  c.header("X-Content-Type-Options", "nosniff");
  c.header("Referrer-Policy", "no-referrer");
  c.header("Cross-Origin-Opener-Policy", "same-origin");
}

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>The dashboard is not built yet</h1>
<p>The server and its API work. To have the dashboard, stop the server and run <code>npm start</code>, or
<code>npm run setup</code> and start it again.</p>
</html>
`;
