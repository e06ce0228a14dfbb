import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../build.ts";
import { FakeServer } from "./testing/fake-server.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
afterAll(() => rmSync(dir, { recursive: true }));

test("it works on Node, over connections that are cut", async () => {
  const fake = new FakeServer();
  fake.faults.cutLogsAfterBytes = 120;
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    development: false,
    fetch: (request) => fake.answer(request),
  });
  try {
    await bundle(dir);
    const child = Bun.spawn(
      ["node", join(import.meta.dir, "../fixtures/on-node.mjs"), join(dir, "index.js")],
      {
        env: { PATH: process.env.PATH ?? "", HOLDFAST_URL: server.url.href, HOLDFAST_TOKEN: fake.token },
        stdout: "pipe",
        stderr: "inherit",
      },
    );
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual({
      stdout: "through node",
      exitCode: 3,
      match: "5",
      log: "line 1\nline 2\nline 3\nline 4\nline 5\n",
      exit: 4,
      aborted: "TimeoutError",
      warnings: 0,
    });
    expect(await child.exited).toBe(0);
  } finally {
    await server.stop(true);
    await fake.close();
  }
});
