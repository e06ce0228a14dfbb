import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { root, run, TestServer } from "./harness.ts";

// Programs as a user runs them, in processes of their own.
setDefaultTimeout(60_000);

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.dispose());

function example(name: string): string[] {
  return [process.execPath, join(root, "examples", name)];
}

function environment() {
  return { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
}

test("durable-agent: agent and server are killed in the middle, and it goes on where it was", async () => {
  const first = Bun.spawn(example("durable-agent.ts"), {
    env: { ...process.env, ...environment() },
    stdout: "pipe",
  });
  let said = "";
  for await (const chunk of first.stdout) {
    said += new TextDecoder().decode(chunk);
    if (said.includes("fetch: 0")) break; // the second step is under way, or about to be
  }
  first.kill("SIGKILL");
  await first.exited;
  await server.restart("SIGKILL");

  const second = await run(example("durable-agent.ts"), { env: environment() });
  expect(second).toMatchObject({ exitCode: 0, stderr: "" });
  const [clock, ...steps] = second.stdout.trim().split("\n");
  expect(clock).toBe(said.split("\n")[0] ?? "");
  expect(steps).toEqual(
    ["fetch: 0", "compute: 0", "report: 0 the result is 12, computed 1 time"].map((line) =>
      expect.stringContaining(line),
    ),
  );
  expect((await Sandbox.get("durable-agent", server.at)).generation).toBe(1);
});

test.each([
  ["dev-server.ts", "200 <h1>hello from a sandbox</h1>\nvisited: /\n"],
  ["attempts.ts", "apple fig pear\npear fig apple\nfig apple pear\nthe original: pear apple fig\n"],
])("%s", async (name, stdout) => {
  expect(await run(example(name), { env: environment() })).toEqual({ exitCode: 0, stdout, stderr: "" });
});
