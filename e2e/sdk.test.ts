import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { root, run, TestServer } from "./harness.ts";

// A package that is built and installed, a browser, and a server that is killed once for each runtime.
setDefaultTimeout(120_000);

const QUIET_BROWSER = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];
const fixtures = join(root, "packages/sdk/fixtures");
const dir = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
const installed = join(dir, "project/node_modules/holdfast");

let server: TestServer;
let browser: Browser;
let pages: Bun.Server<undefined>;

beforeAll(async () => {
  pages = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, development: false, fetch: servePage });
  const origin = pages.url.origin;
  [server, browser] = await Promise.all([
    TestServer.start({ args: ["--allow-origin", origin] }),
    chromium.launch({ executablePath: "/usr/bin/chromium", args: QUIET_BROWSER }),
    packAndInstall(),
  ]);
});

afterAll(async () => {
  await browser.close();
  await pages.stop(true);
  await server.dispose();
  rmSync(dir, { recursive: true });
});

/** As a user has it: from the tarball, in a project that has nothing else. */
async function packAndInstall(): Promise<void> {
  const packed = await run(["npm", "pack", "--pack-destination", dir], { cwd: join(root, "packages/sdk") });
  const tarball = packed.stdout.trim().split("\n").at(-1) ?? "";
  expect(packed).toMatchObject({ exitCode: 0 });
  const project = join(dir, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  const install = ["npm", "install", "--offline", "--no-audit", "--no-fund", join(dir, tarball)];
  expect(await run(install, { cwd: project })).toMatchObject({ exitCode: 0 });
}

/** The installed package and the cases for a page of another origin than the server's; and the way to kill that. */
async function servePage(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/restart") {
    await server.restart("SIGKILL");
    return new Response("back");
  }
  if (pathname === "/favicon.ico") return new Response(null, { status: 204 });
  const file = pathname.startsWith("/sdk/")
    ? join(installed, "dist", pathname.slice(5))
    : join(fixtures, pathname);
  if (pathname === "/") return new Response("<!doctype html>", { headers: { "Content-Type": "text/html" } });
  return new Response(Bun.file(file), { headers: { "Content-Type": "text/javascript" } });
}

test("what a page loads is under 60 kB, and what is published needs nothing else", () => {
  const dist = join(installed, "dist");
  const scan = new Bun.Transpiler({ loader: "js" });
  const importsOf = (name: string) => scan.scanImports(readFileSync(join(dist, name), "utf8"));
  // A page loads the entry and what that imports at once; a sync, which needs directories, is loaded when it is called.
  const atOnce = new Set(["index.js"]);
  for (const name of atOnce)
    for (const { kind, path } of importsOf(name)) if (kind === "import-statement") atOnce.add(path.slice(2));
  const bytes = [...atOnce].reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
  expect(bytes).toBeLessThan(60_000);
  expect([...atOnce].filter((name) => name.startsWith("sync"))).toEqual([]);
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(Object.keys(manifest.peerDependenciesMeta)).toEqual(Object.keys(manifest.peerDependencies));
  expect(readdirSync(installed).sort()).toEqual(["LICENSE", "README.md", "dist", "package.json"]);
});

test("its types stand alone, and hold in a strict project", async () => {
  const project = join(dir, "project");
  const text = `
    import { HoldfastError, Sandbox, type SandboxInfo } from "holdfast";
    const sandbox: Sandbox = await Sandbox.create({ network: "none", limits: { memoryMiB: 512 } });
    const info: Readonly<SandboxInfo> = sandbox.info;
    const state: "running" | "stopped" | string = info.state;
    // @ts-expect-error: there is no such network
    await Sandbox.create({ network: "some" });
    try { await sandbox.exec(["ls"], { timeoutMs: 1 }); } catch (error) {
      if (error instanceof HoldfastError && error.code === "state_lost") console.log(error.hint, state);
    }
    // @ts-expect-error: there is no such code
    if (new HoldfastError("gone", "").code === "nonsense") console.log();
  `;
  writeFileSync(join(project, "strict.ts"), text);
  const options = ["--strict", "--noEmit", "--target", "esnext", "--lib", "esnext,dom", "--types", ""];
  const tsc = [join(root, "node_modules/.bin/tsc"), ...options, "--module", "nodenext", "strict.ts"];
  expect(await run(tsc, { cwd: project })).toMatchObject({ exitCode: 0, stdout: "" });
});

test("the README's example runs on Node, without any configuration but where the server keeps its data", async () => {
  const readme = readFileSync(join(installed, "README.md"), "utf8");
  const [, example = ""] = /<!-- runs -->\n```js\n([\s\S]*?)```/.exec(readme) ?? [];
  writeFileSync(join(dir, "project/example.mjs"), example);
  const env = { HOLDFAST_URL: server.url, HOLDFAST_DATA_DIR: server.dataDir };
  const { exitCode, stdout, stderr } = await run(["node", "example.mjs"], { cwd: join(dir, "project"), env });
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^0 hello from \S+\n\n1\n2\n3\nreadme in \/workspace\n\n$/);
});

test.each([
  ["Node", ["node", "--no-warnings", "--experimental-websocket"]],
  ["Bun", [process.execPath]],
])("the SDK works on %s, also when the server is killed", async (_, runtime) => {
  const env = { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  const program = [
    join(fixtures, "run-cases.mjs"),
    join(installed, "dist/index.js"),
    `${pages.url.origin}/restart`,
  ];
  const { stdout, stderr } = await run([...runtime, ...program], { env });
  expect(stderr).toBe("");
  allOk(JSON.parse(stdout));
});

test("the SDK works in Chromium, on a page of another origin", async () => {
  const page = await browser.newPage();
  await page.goto(pages.url.origin);
  const outcomes = await page.evaluate(
    async (at) => {
      const load = (path: string) => import(path);
      const [sdk, { runCases }] = await Promise.all([load("/sdk/index.js"), load("/runtime-cases.mjs")]);
      return runCases({ sdk, at, restart: () => fetch("/restart", { method: "POST" }) });
    },
    { url: server.url, token: server.token },
  );
  allOk(outcomes);
});

test("a page whose origin the operator did not name is refused, and told at once what to do", async () => {
  const page = await browser.newPage();
  const other = pages.url.origin.replace("127.0.0.1", "localhost");
  await page.goto(other);
  const failure = await page.evaluate(
    async (at) => {
      const load = (path: string) => import(path);
      const { Sandbox } = await load("/sdk/index.js");
      return Sandbox.list(at).catch(({ code, hint }: { code: string; hint: string }) => ({ code, hint }));
    },
    { url: server.url, token: server.token },
  );
  expect(failure).toEqual({
    code: "unavailable",
    hint: expect.stringContaining(`holdfast serve --allow-origin ${other}`),
  });
});

function allOk(outcomes: Record<string, string>): void {
  expect(Object.keys(outcomes).length).toBeGreaterThan(10);
  expect(outcomes).toEqual(Object.fromEntries(Object.keys(outcomes).map((name) => [name, "ok"])));
}
