import { type Clock, defaultMinFreeDisk, type Provider } from "@holdfast/core";
import { KeeperLink } from "@holdfast/keeper-link";
import { SqliteStore } from "@holdfast/store";
import { FakeProvider } from "@holdfast/testkit";
import { type App, createApp } from "./app.ts";
import { newId, newServerId } from "./ids.ts";
import { Lifecycle, type LifecycleConfig } from "./lifecycle/lifecycle.ts";
import type { Log } from "./log.ts";
import { meteredProvider } from "./observe/metered-provider.ts";
import { meteredStore } from "./observe/metered-store.ts";
import { Meters } from "./observe/meters.ts";
import { PreviewPlace } from "./previews/preview-name.ts";

/** Time that stands still until a test moves it. Who sleeps is woken when it has passed. */
class TestClock implements Clock {
  #now = Date.now();
  #sleepers: { at: number; wake: () => void }[] = [];

  now = (): number => this.#now;

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (ms <= 0 || signal?.aborted) return resolve();
      const sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((one) => one !== sleeper);
        resolve();
      });
    });
  }

  pass(ms: number): void {
    this.#now += ms;
    const due = this.#sleepers.filter(({ at }) => at <= this.#now);
    this.#sleepers = this.#sleepers.filter(({ at }) => at > this.#now);
    for (const { wake } of due) wake();
  }

  /** Lets time pass, a second for every moment in which nothing came of it, until the work is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    for (;;) {
      const done = await Promise.race([work.then(() => true), Bun.sleep(5).then(() => false)]);
      if (done) return work;
      this.pass(1000);
    }
  }
}

const config: LifecycleConfig = {
  defaultProvider: "fake",
  slots: null,
  tenantQuota: null,
  minFreeDisk: defaultMinFreeDisk,
  orphanLimitSeconds: 86_400,
  spares: 0,
};

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  body: any;
}

/** The whole server but its sockets, on a fake backend. What it is on outlives a restart. */
export class TestServer {
  readonly clock = new TestClock();
  readonly provider = new FakeProvider({ now: this.clock.now });
  readonly store = new SqliteStore({ path: ":memory:", newId: () => "hfinstallation", now: this.clock.now });
  /** Without a listener: the addresses, and what was cut. */
  readonly cut: string[] = [];
  readonly previews = {
    place: new PreviewPlace("http://localhost:4751"),
    cut: ({ sandboxId, port }: { sandboxId: string; port: number }) => {
      this.cut.push(`${sandboxId}:${port}`);
    },
  };
  readonly meters = new Meters();
  /** What the server logged. */
  readonly lines: { message: string; fields: Record<string, unknown> }[] = [];
  readonly #log = recorder(this.lines);
  #config = config;
  lifecycle = this.#newLifecycle();
  app = this.appWith({ maxRequests: 100 });

  static async start(changes: Partial<LifecycleConfig> = {}): Promise<TestServer> {
    const server = new TestServer();
    server.#config = { ...config, ...changes };
    await server.begin();
    return server;
  }

  /** As after a crash, as far as that can be had in one process: nothing is stopped. */
  async end(): Promise<void> {
    await this.lifecycle.close();
  }

  /** A new server on what the last one left. */
  async begin(): Promise<void> {
    this.lifecycle = this.#newLifecycle();
    this.app = this.appWith({ maxRequests: 100 });
    await this.lifecycle.start();
  }

  async close(): Promise<void> {
    await this.end();
    this.provider.close();
    await this.store.close();
  }

  appWith({ maxRequests }: { maxRequests: number }): App {
    const { lifecycle, meters } = this;
    return createApp({
      ...{ lifecycle, meters },
      previews: this.previews,
      log: this.#log,
      token: () => "token",
      rotateToken: () => "another",
      notReady: () => undefined,
      maxRequests,
    });
  }

  async call(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string>; app?: App } = {},
  ): Promise<Answer> {
    const headers = {
      Authorization: "Bearer token",
      "Content-Type": "application/json",
      ...options.headers,
    };
    const body = options.body === undefined ? {} : { body: JSON.stringify(options.body) };
    const app = options.app ?? this.app;
    const response = await app.request(`/v1${path}`, { method, headers, ...body }, {});
    const text = await response.text();
    // What is told of an answer comes after it.
    await new Promise((told) => setImmediate(() => setImmediate(told)));
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
  }

  #newLifecycle(): Lifecycle<KeeperLink> {
    const { provider, clock, meters } = this;
    const metered: Provider = meteredProvider(provider, { meters });
    return new Lifecycle<KeeperLink>({
      store: meteredStore(this.store, meters),
      providers: new Map([["fake", metered]]),
      door: ({ address, secret, fence }) => new KeeperLink({ socketPath: address.path, secret, fence }),
      clock,
      random: () => 0.5,
      newId,
      log: this.#log,
      owner: newServerId(),
      config: this.#config,
    });
  }
}

function recorder(lines: TestServer["lines"]): Log {
  const record = (message: string, fields: Record<string, unknown> = {}) =>
    void lines.push({ message, fields });
  return { info: record, warn: record, error: record };
}

export function codeOf({ body }: Answer): string | undefined {
  return body?.error?.code;
}
