import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Change } from "@holdfast/protocol";
import { TestServer } from "./test-server.ts";

let server: TestServer;
beforeEach(async () => {
  server = await TestServer.start();
});
afterEach(() => server.close());

interface Told {
  id: string;
  change: Change;
}

/** A follower of all sandboxes, as a client is one. */
class Follower {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #told: Told[] = [];
  #rest = "";

  private constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  static async start(since?: string): Promise<Follower> {
    const headers = { Authorization: "Bearer token", ...(since !== undefined && { "Last-Event-ID": since }) };
    const { body } = await server.app.request("/v1/events", { headers }, {});
    return new Follower(body as ReadableStream<Uint8Array>);
  }

  async next(): Promise<Told> {
    for (;;) {
      const told = this.#told.shift();
      if (told !== undefined) return told;
      const { value } = await this.#reader.read();
      const blocks = (this.#rest + new TextDecoder().decode(value)).split("\n\n");
      this.#rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const [, id, data] = /^id: (.*)\ndata: (.*)$/.exec(block) ?? [];
        if (id !== undefined && data !== undefined) this.#told.push({ id, change: JSON.parse(data) });
      }
    }
  }

  async until(isIt: (change: Change) => boolean): Promise<Told> {
    for (;;) {
      const told = await this.next();
      if (isIt(told.change)) return told;
    }
  }

  async leave(): Promise<void> {
    await this.#reader.cancel();
  }
}

const isIn = (state: string) => (change: Change) =>
  change.type === "changed" && change.sandbox.state === state;

test("a follower is told to look, then of every sandbox as it then is, and of its end", async () => {
  const follower = await Follower.start();
  expect((await follower.next()).change.type).toBe("resync");
  const { body } = await server.call("POST", "/sandboxes", { body: { name: "one" } });
  const { change } = await follower.until(isIn("running"));
  expect(change).toMatchObject({ sandbox: { id: body.id, name: "one", state: "running" } });
  await server.call("DELETE", "/sandboxes/one?wait=5");
  const gone = await follower.until(({ type }) => type === "gone");
  expect(gone.change).toEqual({ type: "gone", sandboxId: body.id });
  await follower.leave();
});

test("who was away goes on after its cursor, without looking at everything", async () => {
  const first = await Follower.start();
  const { id } = await first.next();
  await first.leave();
  await server.call("POST", "/sandboxes", { body: { name: "one" } });
  const again = await Follower.start(id);
  const told = await again.next();
  expect(told.change).toMatchObject({ type: "changed", sandbox: { name: "one", state: "running" } });
  await again.leave();
  // Everything was told: there is nothing more to come after it.
  const last = await Follower.start(told.id);
  await server.call("PATCH", "/sandboxes/one", { body: { labels: { a: "b" } } });
  expect((await last.next()).change).toMatchObject({ sandbox: { labels: { a: "b" } } });
  await last.leave();
});

test("a cursor of another server, or of before a restart, is told to look at everything", async () => {
  const first = await Follower.start();
  const { id } = await first.next();
  await first.leave();
  await server.end();
  await server.begin();
  for (const cursor of [id, "nonsense", `${id}0`]) {
    const again = await Follower.start(cursor);
    expect((await again.next()).change.type).toBe("resync");
    await again.leave();
  }
});
