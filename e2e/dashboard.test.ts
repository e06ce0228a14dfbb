import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Operator, Sandbox } from "holdfast";
import type { Page } from "playwright-core";
import { accessibilityFindings, DashboardBrowser, screenOf, untilScreen } from "./dashboard-browser.ts";
import { root, TestServer } from "./harness.ts";

// A browser and a real server: half a minute on a machine that does nothing else.
setDefaultTimeout(180_000);

/** `HOLDFAST_PICTURES=1` makes the pictures of docs/dashboard.md anew. */
const pictures = process.env.HOLDFAST_PICTURES === undefined ? undefined : join(root, "docs", "pictures");

let server: TestServer;
let browser: DashboardBrowser;
let page: Page;
let sandbox: Sandbox;

beforeAll(async () => {
  server = await TestServer.start();
  browser = await DashboardBrowser.start(server);
});

afterAll(async () => {
  await browser.close();
  await server.dispose();
});

const tab = (name: string) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
const button = (name: string | RegExp) => page.getByRole("button", { name });

test("the token lets one in, stays nowhere in the browser, and a wrong one does not", async () => {
  page = await browser.open();
  await page.getByLabel("Token").fill("wrong");
  await button("Sign in").click();
  await page.getByRole("alert").getByText("this is not the server's token").waitFor();
  expect(browser.errors.splice(0)).toEqual([expect.stringContaining("401")]);
  await page.getByLabel("Token").fill(server.token);
  await button("Sign in").click();
  await page.getByRole("heading", { name: "No sandbox yet" }).waitFor();
  const cookies = await browser.context.cookies();
  expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
  const kept = await page.evaluate(() =>
    JSON.stringify([document.cookie, { ...localStorage }, location.href]),
  );
  expect(kept).not.toContain(server.token);
  expect(JSON.stringify(cookies)).not.toContain(server.token);
  await page.reload();
  await page.getByRole("heading", { name: "No sandbox yet" }).waitFor();
});

test("a sandbox is made by keyboard, and its countdown runs", async () => {
  await page.keyboard.press("n");
  await page.getByLabel("Name").fill("demo");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "demo" }).waitFor();
  sandbox = await Sandbox.get("demo", server.at);
  const timer = page.getByRole("timer");
  const first = (await timer.textContent()) ?? "";
  expect(first).toMatch(/^(29:\d\d|30:0\d)$/);
  await page.waitForFunction((text) => document.querySelector(".countdown")?.textContent !== text, first);
  await page.getByText("unless it is used").waitFor();
  await page.locator(".timeline").getByText("live", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  const row = page.locator("[data-sandbox=demo]");
  await row.getByText(/stops in 29:\d\d/).waitFor();
  // What others do shows by itself.
  await sandbox.update({ onIdle: "remove" });
  await row.getByText(/removed in 29:\d\d/).waitFor();
  await sandbox.stop();
  await row.getByText("stopped", { exact: true }).waitFor();
  // Enter on a link is the link's, on this page, too, where it opens what is selected.
  await page.getByRole("link", { name: "Operator" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Operator" }).waitFor();
  await page.goBack();
  await row.waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await button("Start").click();
  await page.getByText(/generation 2 ·/).waitFor();
});

test("a terminal goes on over a kill -9 of the server with its screen, for two viewers", async () => {
  await tab("terminals");
  await button("New terminal").click();
  await untilScreen(page, "$");
  await page.keyboard.type("top -d 1\n");
  await untilScreen(page, "load average");
  const before = await screenOf(page);
  browser.isServerAway = true;
  await server.signal("SIGKILL");
  await page.locator("[data-line=reconnecting]").waitFor();
  expect(await screenOf(page)).toContain("load average");
  await server.boot();
  await page.locator("[data-line=connected]").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  browser.isServerAway = false;
  await page.waitForFunction((old) => document.querySelector(".xterm-rows")?.textContent !== old, before);
  await untilScreen(page, "load average");

  const other = await browser.open(`/sandboxes/${sandbox.id}/terminals`);
  await untilScreen(other, "load average");
  await page.getByText("2 viewers").waitFor();
  await other.keyboard.press("q");
  await untilScreen(other, "$");
  await other.keyboard.type("clear; echo from-$((40+2))\n");
  await untilScreen(other, "from-42");
  await untilScreen(page, "from-42");
  await other.keyboard.press("Control+F6");
  expect(await other.evaluate(() => document.activeElement === document.body)).toBe(true);
  await other.close();
});

test("50 MB of output leave the terminal usable", async () => {
  await page.evaluate(() => {
    const seen = { longestMs: 0 };
    Object.assign(globalThis, { seen });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) seen.longestMs = Math.max(seen.longestMs, duration);
    }).observe({ type: "longtask" });
  });
  const started = performance.now();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type(
    "yes 'a line of output that is as long as lines are' | head -c 50000000; echo end-$((6*7))\n",
  );
  await untilScreen(page, "end-42");
  const seconds = (performance.now() - started) / 1000;
  const typed = performance.now();
  await page.keyboard.type("clear; echo key-$((1+1))\n");
  await untilScreen(page, "key-2");
  const echoMs = performance.now() - typed;
  const longestMs = await page.evaluate(
    () => (globalThis as unknown as { seen: { longestMs: number } }).seen.longestMs,
  );
  print("50 MB in a terminal", { seconds, longestTaskMs: longestMs, echoAfterwardsMs: echoMs });
  expect(longestMs).toBeLessThan(5_000);
});

test("a process's output is followed, and a stop ends it", async () => {
  await tab("processes");
  await page
    .getByLabel("Command")
    .fill("echo '<b>bold</b>'; for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep 600");
  await page.keyboard.press("Enter");
  const output = page.getByRole("region", { name: "Output" });
  await output.getByText("line 3").waitFor();
  expect(await output.innerHTML()).toContain("&lt;b&gt;");
  await button("Stop").last().click();
  await page.getByText(/ended by SIG/).waitFor();
  // One that somebody else starts shows by itself.
  await sandbox.startProcess("exec python3 -m http.server 8000 --bind 127.0.0.1");
  await page.getByText("python3 -m http.server").waitFor();
  await tab("ports");
  await page
    .getByRole("row", { name: /8000 listens/ })
    .getByRole("button", { name: "Expose" })
    .click();
  const link = page.getByRole("link", { name: /8000-/ });
  await link.waitFor();
  expect((await fetch((await link.getAttribute("href")) ?? "")).status).toBe(200);
});

test("files go up, come down, and a conflict is told instead of overwritten", async () => {
  await tab("files");
  const content = crypto.getRandomValues(new Uint8Array(60_000));
  await page.getByLabel("Files to upload").setInputFiles([
    { name: "data.bin", mimeType: "application/octet-stream", buffer: Buffer.from(content) },
    { name: "<img src=x onerror=alert(1)>.txt", mimeType: "text/plain", buffer: Buffer.from("mine\n") },
  ]);
  await page.getByText("uploaded 2 files").waitFor();
  const waiting = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download data.bin" }).click();
  expect(new Uint8Array(readFileSync(await (await waiting).path()))).toEqual(content);

  const path = "/workspace/<img src=x onerror=alert(1)>.txt";
  await page.getByRole("button", { name: "<img" }).click();
  const text = page.getByLabel(/Content of/);
  await text.fill("changed here\n");
  await sandbox.files.write(path, "changed there\n");
  await button("Save").click();
  await page.getByText("Somebody has changed this file").waitFor();
  expect(browser.errors.splice(0)).toEqual([expect.stringContaining("412")]);
  expect(await sandbox.files.readText(path)).toBe("changed there\n");
  await button("Show theirs").click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "changed there\n");
  await text.fill("both\n");
  await button("Save").click();
  await text.waitFor({ state: "detached" });
  expect(await sandbox.files.readText(path)).toBe("both\n");

  // What could not be written back as it was can be read, and a link to a directory leads there.
  await sandbox.exec("mkdir inner; ln -s inner link; printf 'one\\r\\ntwo' > inner/dos.txt");
  await button("Look again").click();
  await button("link → inner").click();
  await button("dos.txt").click();
  await page.getByText("Its lines end with CR").waitFor();
  expect(await text.getAttribute("readonly")).not.toBeNull();
  await page.keyboard.press("Escape");
});

test("nothing keeps anybody out, in light and in dark, and on a phone nothing is cut off", async () => {
  await sandbox.createSession({ sessionId: "main" });
  const tabs = ["", "/processes", "/terminals", "/sessions", "/files", "/ports", "/snapshots"];
  const places = ["/", ...tabs.map((tab) => `/sandboxes/${sandbox.id}${tab}`)];
  for (const path of [...places, "/operator"]) {
    await page.goto(server.url + path);
    await page.getByRole("heading").first().waitFor();
    await page.getByText("live", { exact: true }).first().waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect([path, colorScheme, await accessibilityFindings(page)]).toEqual([path, colorScheme, []]);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 390]);
    await page.setViewportSize({ width: 1200, height: 760 });
  }
  await page.emulateMedia({ colorScheme: null });
});

test("the operator's page has the providers, the leases as they come, and a sweep that would do nothing", async () => {
  await page.goto(`${server.url}/operator`);
  await page.getByRole("heading", { name: "local" }).waitFor();
  await page.getByRole("link", { name: "demo" }).waitFor();
  await button("Dry run").click();
  await page.getByText("Nothing to do.").waitFor();
  const other = await Sandbox.create({ name: "shows-up", network: "none" }, server.at);
  await page.getByRole("link", { name: "shows-up" }).waitFor();
  await other.delete({ force: true });
  await page.getByRole("link", { name: "shows-up" }).waitFor({ state: "detached" });
});

if (pictures !== undefined) test("pictures", () => takePictures(pictures));

test("a sandbox is deleted after it was asked for, and its row goes", async () => {
  await page.goto(server.url);
  await button("Delete demo").click();
  await page.getByRole("dialog").getByText("This cannot be undone").waitFor();
  expect(await accessibilityFindings(page)).toEqual([]);
  await button("Cancel").click();
  await button("Delete demo").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "No sandbox yet" }).waitFor();
  await page.goto(`${server.url}/sandboxes/${sandbox.id}`);
  await page.locator(".timeline").getByText("deleted", { exact: true }).waitFor();
});

test("a list of 500 stays quick", async () => {
  const rows = await withRows(500);
  await page.goto(server.url);
  await page.getByText("500", { exact: true }).waitFor();
  const figures = await page.evaluate(measureList);
  print("500 sandboxes", figures);
  expect(figures.drawnRows).toBeLessThan(100);
  expect(figures.listMs).toBeLessThan(10_000);
  expect(figures.worstFrameMs).toBeLessThan(2_000);
  await page.keyboard.press("/");
  await page.keyboard.type("copy-499");
  await page.getByText("1 of 500").waitFor();
  await rows.remove();
});

test("another token ends every session, and a link of the command line begins one, once", async () => {
  await page.goto(server.url);
  await page.getByText("live", { exact: true }).waitFor();
  await (await Operator.connect(server.at)).rotateToken();
  // Its next question tells the page. That is this one, unless it has just asked one by itself, and the link is gone.
  void page
    .getByRole("link", { name: "Operator" })
    .click()
    .catch(() => {});
  await page.getByLabel("Token").waitFor();
  for (const error of browser.errors.splice(0)) expect(error).toContain("401");

  const { url } = await (await Operator.connect(server.at)).signInLink();
  const entered = await browser.open(url.slice(server.url.length));
  await entered.getByRole("heading", { name: "Sandboxes" }).waitFor();
  expect(entered.url()).toBe(`${server.url}/`);
  await entered.getByRole("button", { name: "Sign out" }).click();
  await entered.getByLabel("Token").waitFor();
  await entered.goto(url);
  await entered.reload();
  await entered.getByLabel("Token").waitFor();
  // The second load asks again if the first was not done.
  const refusals = browser.errors.splice(0);
  expect(refusals.length).toBeWithin(1, 3);
  for (const error of refusals) expect(error).toContain("401");
});

test("no page wrote an error, and none asked another host", () => {
  expect(browser.errors).toEqual([]);
});

/** Scrolls from top to bottom, a screen at each frame. */
async function measureList() {
  const listMs = performance.now();
  let [worstFrameMs, frames, last] = [0, 0, performance.now()];
  const started = last;
  for (let top = 0; top < document.body.scrollHeight; top += 700) {
    scrollTo({ top });
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    [worstFrameMs, frames, last] = [Math.max(worstFrameMs, now - last), frames + 1, now];
  }
  const drawnRows = document.querySelectorAll("li.row").length;
  scrollTo({ top: 0 });
  return { listMs, frames, meanFrameMs: (last - started) / frames, worstFrameMs, drawnRows };
}

/** So many sandboxes that were never started. Made in the database while no server has it: their launch is not the matter here. */
async function withRows(count: number): Promise<{ remove(): Promise<void> }> {
  const original = await Sandbox.create({ name: "original" }, server.at);
  await original.stop();
  const whileAway = async (change: (rows: Database) => void) => {
    browser.isServerAway = true;
    await server.signal("SIGKILL");
    const rows = new Database(join(server.dataDir, "holdfast.db"));
    change(rows);
    rows.close();
    await server.boot();
    await page.goto(server.url);
    browser.isServerAway = false;
  };
  await whileAway((rows) => {
    const columns = rows.query<{ name: string }, []>("SELECT name FROM pragma_table_info('sandbox')").all();
    const kept = columns
      .map(({ name }) => name)
      .filter((name) => !["seq", "id", "name", "idempotency_key"].includes(name));
    const copy = rows.query(
      `INSERT INTO sandbox (id, name, ${kept}) SELECT ?, ?, ${kept} FROM sandbox WHERE name = 'original'`,
    );
    rows.transaction(() => {
      for (let no = 1; no < count; no++) copy.run(`sbxcopy${no}`, `copy-${no}`);
    })();
  });
  return {
    remove: () => whileAway((rows) => rows.run("DELETE FROM sandbox WHERE id LIKE 'sbxcopy%'")),
  };
}

function print(what: string, figures: Record<string, number>): void {
  const told = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value * 10) / 10}`);
  process.stdout.write(`${what}: ${told.join(", ")}\n`);
}

async function takePictures(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const shot = async (name: string) => {
    const { width = 0, height = 0 } = page.viewportSize() ?? {};
    const clip = { x: 0, y: 0, width, height: Math.min(height, 640) };
    await page.screenshot({ path: join(dir, `dashboard-${name}.png`), clip });
  };
  await Sandbox.create({ name: "nightly-build", lifetimeSeconds: 300, onIdle: "remove" }, server.at);
  const agent = await Sandbox.create({ name: "issue-42", labels: { team: "web" } }, server.at);
  await agent.beginTurn();
  await page.goto(server.url);
  await page.getByText("held awake").waitFor();
  await shot("list");
  await page.goto(`${server.url}/sandboxes/${sandbox.id}`);
  await sandbox.startProcess("for n in 1 2 3 4 5 6; do timeout 2 yes > /dev/null; sleep 2; done");
  await page.waitForTimeout(30_000);
  await shot("overview");
  await page.emulateMedia({ colorScheme: "dark" });
  await tab("terminals");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("clear; ls -la --color=always /\n");
  await untilScreen(page, "workspace");
  await page.waitForTimeout(500);
  await shot("terminal-dark");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(server.url);
  await page.getByText("held awake").waitFor();
  await shot("phone-dark");
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1200, height: 760 });
  for (const one of await Sandbox.list(server.at)) if (one.id !== sandbox.id) await one.delete();
}
