import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { TestServer } from "./harness.ts";

const QUIET_BROWSER = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** A real browser on the dashboard. It notes every error that its pages write to the console. */
export class DashboardBrowser {
  readonly errors: string[] = [];
  /** While the server is down, a browser says so in the console. */
  isServerAway = false;
  readonly #server: TestServer;
  readonly #browser: Browser;
  readonly context: BrowserContext;

  private constructor(server: TestServer, browser: Browser, context: BrowserContext) {
    this.#server = server;
    this.#browser = browser;
    this.context = context;
  }

  static async start(server: TestServer): Promise<DashboardBrowser> {
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: QUIET_BROWSER });
    const context = await browser.newContext({ viewport: { width: 1200, height: 760 } });
    // Without it a terminal draws into the page, where a test can read it.
    await context.addInitScript({ content: NO_WEBGL });
    return new DashboardBrowser(server, browser, context);
  }

  async open(path = "/"): Promise<Page> {
    const page = await this.context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => this.errors.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !this.isServerAway) this.errors.push(message.text());
    });
    page.on("request", (request) => {
      const { origin } = new URL(request.url());
      if (origin !== this.#server.url && !request.url().startsWith("data:")) this.errors.push(request.url());
    });
    await page.goto(this.#server.url + path);
    return page;
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}

const NO_WEBGL = `
const getContext = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : getContext.call(this, kind, ...rest);
};`;

/** What keeps people out, by the rules of axe: each as its rule and where. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const inPage = (globalThis as unknown as { axe: typeof axe }).axe;
    const { violations } = await inPage.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}

/** The text on a terminal's screen. */
export async function screenOf(page: Page): Promise<string> {
  return (await page.locator(".xterm-rows").textContent()) ?? "";
}

/** Waits until the screen shows it. */
export async function untilScreen(page: Page, text: string): Promise<void> {
  await page.locator(".xterm-rows", { hasText: text }).waitFor();
}
