import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { FENCE_HEADER, Process, Session } from "@holdfast/protocol";
import { execRoutes } from "../exec/exec-routes.ts";
import { guarded } from "../http/guard.ts";
import { testGuard } from "../lifecycle/test-door.ts";
import { processRoutes } from "../process/process-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { type TestSessions, testSessions } from "./test-sessions.ts";

let all: TestSessions;
let server: Bun.Server<never>;
beforeAll(() => {
  all = testSessions({ env: { INJECTED: "secret" } });
  const { engine, sessions } = all;
  const routes = { ...sessionRoutes(engine, sessions), ...execRoutes(engine), ...processRoutes(engine) };
  server = Bun.serve({
    unix: engine.boot.socketPath,
    // biome-ignore lint/suspicious/noExplicitAny: the types of Bun's routes are for literal paths
    routes: guarded(routes, testGuard(engine)) as any,
  });
});
afterAll(async () => {
  await server.stop(true);
  await all[Symbol.asyncDispose]();
  expect(all.processes()).toEqual([]);
});

async function call(method: string, path: string, body?: unknown) {
  const response = await fetch(`http://keeper/v1${path}`, {
    unix: all.engine.boot.socketPath,
    method,
    headers: { Authorization: `Bearer ${all.engine.boot.secret}`, [FENCE_HEADER]: "1" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

test("a session's life over HTTP", async () => {
  const made = await call("POST", "/sessions", { sessionId: "web", cwd: "/usr", commandTimeoutMs: 60_000 });
  expect(made).toEqual({
    status: 201,
    body: {
      sessionId: "web",
      state: "idle",
      shell: "bash",
      carries: expect.arrayContaining(["cwd", "functions", "traps"]),
      cwd: "/usr",
      createdAt: expect.any(String),
      commandTimeoutMs: 60_000,
      waiting: [],
    },
  });
  const again = await call("POST", "/sessions", { sessionId: "web", cwd: "/usr", commandTimeoutMs: 60_000 });
  expect(again).toEqual({ ...made, status: 200 });
  expect((await call("GET", "/sessions")).body).toEqual({ sessions: [Session.parse(made.body)] });
  expect((await call("POST", "/sessions/web/exec", { command: "cd lib; X=1" })).status).toBe(200);
  const { body } = await call("POST", "/sessions/web/exec", { command: 'echo "$X $PWD"', commandId: "w-1" });
  expect(body).toMatchObject({ stdout: "1 /usr/lib\n", sessionId: "web", exitCode: 0 });
  expect((await call("GET", "/commands/w-1")).body).toEqual(body);
  expect((await call("GET", "/sessions/web")).body.cwd).toBe("/usr/lib");
  expect((await call("DELETE", "/sessions/web")).status).toBe(204);
  expect((await call("DELETE", "/sessions/web")).status).toBe(204);
  expect(await call("GET", "/sessions/web")).toMatchObject({
    status: 404,
    body: { error: { code: "not_found" } },
  });
});

test("a session's command is cancelled like any other", async () => {
  await call("POST", "/sessions", { sessionId: "c" });
  const running = call("POST", "/sessions/c/exec", { command: "sleep 60", commandId: "c-1" });
  const waiting = call("POST", "/sessions/c/exec", { command: "echo", commandId: "c-2" });
  while ((await call("GET", "/sessions/c")).body.waiting.length === 0) await Bun.sleep(5);
  expect((await call("POST", "/commands/c-2/cancel")).body).toMatchObject({ cancelled: true, ran: false });
  expect((await call("POST", "/commands/c-1/cancel")).body).toMatchObject({ cancelled: true, ran: true });
  expect([(await running).body.cancelled, (await waiting).body.cancelled]).toEqual([true, true]);
  await call("DELETE", "/sessions/c");
});

const refused: readonly { what: string; path: string; body: unknown; status: number; says: string }[] = [
  {
    what: "no session",
    path: "/sessions/none/exec",
    body: { command: "echo" },
    status: 404,
    says: "no session none",
  },
  { what: "an array", path: "/sessions/x/exec", body: { command: ["a"] }, status: 400, says: "command" },
  { what: "no text", path: "/sessions/x/exec", body: { command: "" }, status: 400, says: "command" },
  { what: "a NUL", path: "/sessions/x/exec", body: { command: "a\0" }, status: 400, says: "NUL" },
  {
    what: "a cwd of its own",
    path: "/sessions/x/exec",
    body: { command: "a", cwd: "/" },
    status: 400,
    says: "cwd",
  },
  { what: "a bad id", path: "/sessions", body: { sessionId: "../x" }, status: 400, says: "sessionId" },
  { what: "a bad name", path: "/sessions", body: { env: { "A B": "1" } }, status: 400, says: "env" },
];
for (const { what, path, body, status, says } of refused) {
  test(`refused: ${what}`, async () => {
    const answer = await call("POST", path, body);
    expect([answer.status, answer.body.error.started]).toEqual([status, "no"]);
    expect(answer.body.error.message).toContain(says);
  });
}

test("a process begins with the session's state, and gives nothing back", async () => {
  await call("POST", "/sessions", { sessionId: "p", env: { OWN: "own" } });
  const setup =
    "cd /usr/lib; V='not exported'; export E=e; A=(1 'b c'); f() { echo in f; X=changed; }; X=1; set -- p1; umask 077";
  await call("POST", "/sessions/p/exec", { command: setup });
  const command =
    'f; echo "$PWD $V $E $' + '{A[1]} $X $1 $(umask) $INJECTED $OWN $GIVEN [$HOLDFAST_SESSION]"';
  const started = await call("POST", "/sessions/p/processes", {
    command,
    env: { GIVEN: "g'1", E: "call" },
    processId: "p-1",
  });
  expect(started.status).toBe(201);
  expect(Process.parse(started.body)).toMatchObject({ sessionId: "p", cwd: "/usr/lib", processId: "p-1" });
  const ended = (await call("GET", "/processes/p-1/wait?timeoutMs=5000")).body;
  expect(ended.status).toMatchObject({ state: "exited", exitCode: 0 });
  expect(await logOf("p-1")).toBe("in f\n/usr/lib not exported call b c changed p1 0077 secret own g'1 []\n");
  expect((await call("POST", "/sessions/p/exec", { command: "echo $X $E" })).body.stdout).toBe("1 e\n");

  await call("POST", "/sessions/p/processes", {
    command: ["printenv", "E", "HOLDFAST_COMMAND"],
    processId: "p-2",
  });
  await call("GET", "/processes/p-2/wait?timeoutMs=5000");
  expect(await logOf("p-2")).toBe("e\np-2\n");
  expect((await call("GET", "/processes?sessionId=p")).body.processes).toHaveLength(2);

  await call("POST", "/sessions/p/processes", { command: "sleep 60", processId: "p-3" });
  await call("DELETE", "/sessions/p");
  expect((await call("GET", "/processes/p-3")).body.status).toEqual({ state: "running" });
  expect((await call("POST", "/processes/p-3/kill")).body.status.state).toBe("exited");
  const states = join(all.dir, "state/process-states");
  expect(existsSync(states) ? readdirSync(states) : []).toEqual([]);
});

async function logOf(id: string): Promise<string> {
  const response = await fetch(`http://keeper/v1/processes/${id}/logs`, {
    unix: all.engine.boot.socketPath,
    headers: {
      Authorization: `Bearer ${all.engine.boot.secret}`,
      [FENCE_HEADER]: "1",
      Accept: "application/octet-stream",
    },
  });
  return response.text();
}
