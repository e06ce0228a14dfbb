import { afterAll, beforeAll, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { run, TestServer } from "./harness.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
  await Sandbox.create({ name: "one", network: "none" }, server.at);
});
afterAll(() => server.dispose());

const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  server.fetch(path, { method: "POST", body, headers });

test.each([
  ["an unknown sandbox", "/v1/sandboxes/nobody/exec", '{"command":"true"}', 404, "not_found"],
  ["bad JSON", "/v1/sandboxes/one/exec", '{"command":', 400, "invalid_argument"],
  ["a wrong type", "/v1/sandboxes/one/exec", '{"command":{"a":1}}', 400, "invalid_argument"],
  ["an unknown field", "/v1/sandboxes/one/exec", '{"command":"true","sudo":true}', 400, "invalid_argument"],
  [
    "a NUL in a path",
    "/v1/sandboxes/one/exec",
    '{"command":"true","cwd":"/tmp/\\u0000"}',
    400,
    "invalid_argument",
  ],
  [
    "a negative timeout",
    "/v1/sandboxes/one/exec",
    '{"command":"true","timeoutMs":-5}',
    400,
    "invalid_argument",
  ],
  [
    "an id that climbs",
    "/v1/sandboxes/one/exec",
    '{"command":"true","commandId":"../../x"}',
    400,
    "invalid_argument",
  ],
  [
    "a bad env name",
    "/v1/sandboxes/one/exec",
    '{"command":"true","env":{"A=B":"1"}}',
    400,
    "invalid_argument",
  ],
  [
    "an unknown signal",
    "/v1/sandboxes/one/processes/p/signal",
    '{"signal":"SIGNOPE"}',
    400,
    "invalid_argument",
  ],
])("%s gets the right code, a message and a hint", async (_, path, body, status, code) => {
  const response = await post(path, body);
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  expect([response.status, error.code]).toEqual([status, code]);
  expect(error.message).toMatch(/./);
  expect(error.hint).toMatch(/./);
});

test("a wrong token is refused, and the right one is nowhere in the answer or the log", async () => {
  const response = await post("/v1/sandboxes", "{}", { Authorization: "Bearer wrong" });
  const text = await response.text();
  expect([response.status, text.includes("unauthenticated"), text.includes(server.token)]).toEqual([
    401,
    true,
    false,
  ]);
  expect(server.output).not.toContain(server.token);
  const { stdout } = await run(["ps", "-eo", "args"]);
  expect(stdout).not.toContain(server.token);
});

test("100 MB of headers, half a request and garbage end only themselves", async () => {
  const begin = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  const flood = await raw((socket) => {
    socket.write(begin);
    let sent = 0;
    const pour = () => {
      while (sent < 100_000_000 && !socket.destroyed) {
        sent += 65_546;
        if (!socket.write(`X-${sent}: ${"a".repeat(65_536)}\r\n`)) return void socket.once("drain", pour);
      }
      socket.end("\r\n");
    };
    pour();
  });
  expect(flood).not.toContain("200 OK");
  expect(await raw((socket) => socket.end("\x16\x03\x01 not http at all\r\n\r\n"))).not.toContain("200 OK");
  const half = connect(Number(new URL(server.url).port), "127.0.0.1");
  half.write(
    `POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 50\r\n\r\n{"na`,
  );
  expect((await server.fetch("/healthz")).status).toBe(200);
  half.destroy();
  expect((await post("/v1/sandboxes/one/exec", '{"command":"echo on"}')).status).toBe(200);
});

test("a body over the limit is refused without being read", async () => {
  const response = await post("/v1/sandboxes/one/exec", JSON.stringify({ command: "x".repeat(17_000_000) }));
  expect(response.status).toBe(413);
});

test("the token and the socket are for their owner alone", async () => {
  for (const name of ["token", "holdfast.sock", "lock"]) {
    expect([name, statSync(join(server.dataDir, name)).mode & 0o077]).toEqual([name, 0]);
  }
  const overSocket = await fetch("http://holdfast/v1/sandboxes", {
    unix: join(server.dataDir, "holdfast.sock"),
  } as RequestInit);
  expect(overSocket.status).toBe(200);
});

test("a second server on the same data dir is refused and names the first", async () => {
  const second = await run([
    join(import.meta.dir, "../packages/cli/bin/holdfast"),
    "serve",
    "--port",
    "0",
    "--data-dir",
    server.dataDir,
  ]);
  expect(second.exitCode).toBe(1);
  expect(second.stderr).toContain(`pid ${server.pid}`);
  expect(second.stderr).toContain("hint:");
});

/** Everything that the server answers to raw bytes. */
function raw(send: (socket: ReturnType<typeof connect>) => void): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => send(socket));
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => resolve(answer));
    socket.on("close", () => resolve(answer));
  });
}
