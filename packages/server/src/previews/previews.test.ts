import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { HoldfastError } from "@holdfast/protocol";
import { silentLog } from "../log.ts";
import type { PreviewLimits } from "./limits.ts";
import { PreviewPlace } from "./preview-name.ts";
import { Previews, type PreviewsDeps } from "./previews.ts";

const place = new PreviewPlace("https://preview.example.com");

const roomy = { connections: 9, connectionsOfSandbox: 9, headMs: 60_000, idleMs: 60_000 };

test("who sends nothing, or a head in drops, is not waited for", async () => {
  await using listening = await listen({ ...roomy, headMs: 200, idleMs: 200 });
  const silent = await visit(listening.port);
  const slow = await visit(listening.port);
  slow.socket.write("GET / HTTP/1.1\r\n");
  // One drop and another: each comes in time, the head does not.
  const drops = setInterval(() => slow.socket.write("X: y\r\n"), 20);
  expect(await Promise.all([silent.all, slow.all])).toEqual(["", ""]);
  clearInterval(drops);
});

test("who is one too many, for the server or for a sandbox, is told so", async () => {
  await using listening = await listen({ ...roomy, connections: 2, connectionsOfSandbox: 1 });
  const request = "GET / HTTP/1.1\r\nHost: 80-sbx1.preview.example.com\r\n\r\n";
  const first = await visit(listening.port);
  first.socket.write(request);
  await listening.isVisited;
  const second = await visit(listening.port);
  const third = await visit(listening.port);
  expect(await third.all).toStartWith("HTTP/1.1 503 Too many connections\r\n");
  second.socket.write(request);
  expect(await second.all).toStartWith("HTTP/1.1 503 Too many connections\r\n");
  listening.stop();
  expect(await first.all).toStartWith("HTTP/1.1 503 The sandbox does not run\r\n");
});

test("a preview's name is a label that a certificate covers, and is read back as it was written", () => {
  const name = { port: 65_535, sandboxId: "sbx0123456789abc", token: "a".repeat(26) };
  const { hostname, origin } = new URL(place.urlOf(name.sandboxId, name));
  expect(origin).toBe(`https://65535-sbx0123456789abc-${name.token}.preview.example.com`);
  expect(hostname.split(".")[0]?.length).toBeLessThanOrEqual(63);
  expect(place.parse(`${hostname}:8443`)).toEqual(name);
  expect(place.parse("80-sbx1.preview.example.com")).toEqual({ port: 80, sandboxId: "sbx1", token: null });
  const others = [
    "preview.example.com",
    "80-sbx1.example.com",
    "080-sbx1.preview.example.com",
    "a.80-sbx1.preview.example.com",
    "",
  ];
  expect(others.map((host) => place.parse(host))).toEqual(others.map(() => undefined));
});

/** A listener on one sandbox with a public port, that is about to stop. */
async function listen(limits: PreviewLimits) {
  const visited = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const ports = [{ port: 80, token: null, wake: false, createdAt: 0 }];
  const sandboxes = {
    get: async () => ({ sandboxId: "sbx1", sandbox: { ports } }),
    visit: async () => {
      visited.resolve();
      await stopped.promise;
      throw new HoldfastError("wrong_state", "the sandbox is stopped");
    },
  } as unknown as PreviewsDeps["sandboxes"];
  const facts = { isReady: () => true, isProxied: false, isShared: false, log: silentLog };
  const previews = new Previews({ sandboxes, place, limits, ...facts });
  return {
    port: await previews.listen({ host: "127.0.0.1", port: 0 }),
    isVisited: visited.promise,
    stop: stopped.resolve,
    [Symbol.asyncDispose]: () => previews.close(),
  };
}

/** `all`: everything that comes until the end. */
async function visit(port: number): Promise<{ socket: Socket; all: Promise<string> }> {
  const socket = connect(port, "127.0.0.1");
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  let heard = "";
  socket.on("data", (bytes) => {
    heard += String(bytes);
  });
  socket.on("error", () => {});
  return { socket, all: new Promise((resolve) => socket.once("close", () => resolve(heard))) };
}
