import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { type Browser, chromium } from "playwright-core";
import { root, TestServer } from "./harness.ts";

// A browser, a package manager's worth of files and a dev server: five seconds on a machine that does nothing else.
setDefaultTimeout(120_000);

const QUIET_BROWSER = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  [server, browser] = await Promise.all([
    TestServer.start(),
    chromium.launch({ executablePath: "/usr/bin/chromium", args: QUIET_BROWSER }),
  ]);
});

afterAll(async () => {
  await browser.close();
  await server.dispose();
});

test("a Vite dev server in a sandbox shows in a browser, and an edit shows without a reload", async () => {
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  await copyPackage(sandbox, "vite");
  await sandbox.files.write(
    "/workspace/index.html",
    '<h1></h1><script type="module" src="/main.js"></script>',
  );
  await sandbox.files.write("/workspace/main.js", MAIN);
  await sandbox.files.write("/workspace/text.js", 'export const text = "before";');
  const vite = await sandbox.startProcess(["node", "node_modules/vite/bin/vite.js", "--port", "5173"], {
    cwd: "/workspace",
  });
  await vite.waitForPort(5173, { timeoutMs: 60_000 });
  const { url, cookieUrl = "" } = await sandbox.ports.expose(5173);

  const page = await browser.newPage();
  const sockets: string[] = [];
  page.on("websocket", (socket) => sockets.push(new URL(socket.url()).host));
  const connected = page.waitForEvent("console", (message) => message.text().includes("[vite] connected"));
  await page.goto(url);
  await page.getByRole("heading", { name: "before" }).waitFor();
  await connected;
  expect(sockets).toEqual([new URL(url).host]);

  await page.evaluate("globalThis.isTheSamePage = true");
  await sandbox.files.write("/workspace/text.js", 'export const text = "after";');
  await page.getByRole("heading", { name: "after" }).waitFor();
  expect(await page.evaluate("globalThis.isTheSamePage")).toBe(true);

  await page.goto(cookieUrl);
  await page.getByRole("heading", { name: "after" }).waitFor();
  expect(page.url()).toBe(cookieUrl.replace(/\?.*/, ""));

  const other = url.replace(/-[a-z0-9]{26}\./, `-${"0".repeat(26)}.`);
  expect((await page.goto(other))?.status()).toBe(404);
  await page.getByRole("heading", { name: "Nothing is here" }).waitFor();
});

const MAIN = `
import { text } from "./text.js";
const show = (text) => (document.querySelector("h1").textContent = text);
show(text);
import.meta.hot.accept("./text.js", (next) => show(next.text));
`;

/** Puts an npm package of ours into the sandbox, which has no network to get it by itself. */
async function copyPackage(sandbox: Sandbox, name: string): Promise<void> {
  const packages = join(root, "node_modules");
  const tar = Bun.spawn(["tar", "-C", packages, "-cf", "-", ...withDependencies(packages, name)]);
  await sandbox.files.write("/workspace/packages.tar", tar.stdout);
  const { exitCode } = await sandbox.exec("mkdir node_modules && tar -C node_modules -xf packages.tar", {
    cwd: "/workspace",
  });
  expect([await tar.exited, exitCode]).toEqual([0, 0]);
}

/** Those that were installed for this machine. */
function withDependencies(packages: string, name: string, found = new Set<string>()): Set<string> {
  const manifest = join(packages, name, "package.json");
  if (found.has(name) || !existsSync(manifest)) return found;
  found.add(name);
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(manifest, "utf8"));
  for (const one of Object.keys({ ...dependencies, ...optionalDependencies }))
    withDependencies(packages, one, found);
  return found;
}
