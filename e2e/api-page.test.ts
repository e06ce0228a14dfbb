import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Sandbox } from "holdfast";
import { type Browser, chromium } from "playwright-core";
import { TestServer } from "./harness.ts";

// Three seconds on a machine that does nothing else.
setDefaultTimeout(120_000);

let server: TestServer;
let browser: Browser;
beforeAll(async () => {
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  [server, browser] = await Promise.all([
    TestServer.start(),
    chromium.launch({ executablePath: "/usr/bin/chromium", args }),
  ]);
});
afterAll(async () => {
  await browser.close();
  await server.dispose();
});

test("the API page asks the real server with its token, on a phone too, and nobody else", async () => {
  await Sandbox.create({ name: "shown", network: "none" }, server.at);
  const page = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  const wrong: string[] = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== server.url) wrong.push(`elsewhere: ${request.url()}`);
  });
  await page.goto(`${server.url}/docs`);

  await page.getByRole("button", { name: "Authorize" }).click();
  await page.getByRole("textbox", { name: "auth-bearer-value" }).fill(server.token);
  await page.getByRole("button", { name: "Apply credentials" }).click();
  await page.getByRole("button", { name: "Close", exact: true }).click();

  const operation = page.locator("[id$=-getSandbox]");
  await operation.locator(".opblock-summary-control").click();
  await operation.getByPlaceholder("id").fill("shown");
  await operation.getByRole("button", { name: "Execute" }).click();
  const answer = operation.locator(".live-responses-table .response .microlight").first();
  await answer.waitFor();
  expect(await answer.textContent()).toContain('"name": "shown"');

  expect(await page.evaluate(() => document.documentElement.classList.contains("dark-mode"))).toBe(true);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(wrong).toEqual([]);
  await page.close();
});
