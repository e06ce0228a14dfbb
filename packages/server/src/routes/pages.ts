import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import { type App, type AppEnv, newApp } from "../app.ts";
import { llmsText, type Page } from "../pages/llms-text.ts";

const docsDir = join(import.meta.dir, "../../../../docs");
const skillPath = join(import.meta.dir, "../../../cli/src/skill/holdfast/SKILL.md");
const pagesDir = join(import.meta.dir, "../pages");
const swaggerDir = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));

/** All that the API page loads; nothing of it comes from elsewhere, so that it works without a network. */
const assets: Readonly<Record<string, { file: string; type: string }>> = {
  "swagger-ui.css": { file: join(swaggerDir, "swagger-ui.css"), type: "text/css" },
  "swagger-ui-bundle.js": { file: join(swaggerDir, "swagger-ui-bundle.js"), type: "text/javascript" },
  "api-page.css": { file: join(pagesDir, "api-page.css"), type: "text/css" },
  "api-page.js": { file: join(pagesDir, "api-page.js"), type: "text/javascript" },
};

/** Only this server's own files, and no inline script or style. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join("; ");

/** Pages for whoever reads: they say nothing about this server, so they need no token. */
export function pageRoutes(): App {
  const app = newApp();
  app.get("/docs", (c) => {
    c.header("Content-Security-Policy", POLICY);
    c.header("Referrer-Policy", "no-referrer");
    return served(c, { file: join(pagesDir, "api-page.html"), type: "text/html" });
  });
  app.get("/docs/assets/:name", (c) => served(c, assets[c.req.param("name")]));
  app.get("/docs/:page{[a-z0-9-]+\\.md}", (c) => {
    const name = c.req.param("page");
    const file = name === "skill.md" ? skillPath : join(docsDir, name);
    return served(c, { file, type: "text/markdown" });
  });
  app.get("/llms.txt", (c) => {
    const { origin } = new URL(c.req.url);
    return c.text(llmsText({ origin, pages: pagesIn(docsDir) }));
  });
  return app;
}

async function served(
  c: Context<AppEnv>,
  asset: { file: string; type: string } | undefined,
): Promise<Response> {
  const file = asset === undefined ? undefined : Bun.file(asset.file);
  if (asset === undefined || file === undefined || !(await file.exists())) throw noPage(c.req.path);
  c.header("Content-Type", `${asset.type}; charset=utf-8`);
  c.header("X-Content-Type-Options", "nosniff");
  // The same address is another file after an upgrade.
  c.header("Cache-Control", "no-cache");
  return c.body(await file.bytes());
}

/** Every document, by its title. */
function pagesIn(dir: string): Page[] {
  return readdirSync(dir)
    .filter((name) => /^[a-z0-9-]+\.md$/.test(name))
    .sort()
    .map((name) => ({
      path: `/docs/${name}`,
      title: readFileSync(join(dir, name), "utf8").match(/^# (.+)$/m)?.[1] ?? name,
    }));
}

function noPage(path: string): HoldfastError {
  return new HoldfastError("not_found", `there is no page ${path}`, {
    hint: "the pages are listed at /llms.txt",
  });
}
