import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestServer } from "../test-server.ts";
import { loadAssets } from "./assets.ts";
import { dashboardPages } from "./pages.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-pages-"));
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
  mkdirSync(join(dir, "0123"));
  writeFileSync(join(dir, "current"), "0123\n");
  for (const name of ["index.html", "index.html.br", "main-1.js", "secret.txt"])
    writeFileSync(join(dir, "0123", name), name);
});
afterAll(async () => {
  await server.close();
  rmSync(dir, { recursive: true });
});

const built = () => dashboardPages(loadAssets(dir));
const get = (path: string, headers: Record<string, string> = {}) => built().request(path, { headers }, {});

test.each(["/", "/sandboxes/one", "/sandboxes/one/files", "/operator"])("%s is the page", async (path) => {
  const page = await get(path, { "Accept-Encoding": "gzip, br" });
  expect([page.status, await page.text()]).toEqual([200, "index.html.br"]);
  expect(page.headers.get("content-encoding")).toBe("br");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("script-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
});

test("files are kept for ever by a browser, and only those of the build are given", async () => {
  const script = await get("/assets/main-1.js");
  expect([await script.text(), script.headers.get("cache-control")]).toEqual([
    "main-1.js",
    "public, max-age=31536000, immutable",
  ]);
  for (const name of ["secret.txt", "..%2fcurrent", "main-2.js"])
    expect((await get(`/assets/${name}`)).status).toBe(404);
});

test("a build that is missing is said in the page", async () => {
  const page = await dashboardPages(loadAssets(join(dir, "nowhere"))).request("/", {}, {});
  expect(page.status).toBe(503);
  expect(await page.text()).toContain("npm start");
});

const ask = (method: string, headers: Record<string, string>, body?: unknown) =>
  server.app.request(
    "http://holdfast.test/session",
    {
      method,
      headers: { Host: "holdfast.test", "Content-Length": "50", ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    },
    {},
  );
const own = { "Sec-Fetch-Site": "same-origin" };

test("the token makes a session, which the API takes; a wrong one, and another site's page, make none", async () => {
  expect((await ask("POST", own, { token: "wrong" })).status).toBe(401);
  expect((await ask("POST", { Origin: "http://evil.example" }, { token: "token" })).status).toBe(403);
  const entered = await ask("POST", own, { token: "token" });
  const Cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(entered.status).toBe(200);
  expect(Cookie).not.toContain("token");

  const list = (headers: Record<string, string>) => server.app.request("/v1/sandboxes", { headers }, {});
  expect((await list({ ...own, Cookie })).status).toBe(200);
  expect((await list({ ...own })).status).toBe(401);
  expect(await (await ask("GET", { ...own, Cookie })).json()).toEqual({ signedIn: true });
  expect(await (await ask("GET", own)).json()).toEqual({ signedIn: false });
  const ended = await ask("DELETE", { ...own, Cookie });
  expect(ended.headers.get("set-cookie")).toContain("Max-Age=0");
});

test("whatever the API answers, a browser makes no page of it", async () => {
  const { headers } = await server.app.request("/v1/sandboxes", {}, {});
  expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
});
