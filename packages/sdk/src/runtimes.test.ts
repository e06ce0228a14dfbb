import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeServer } from "./testing/fake-server.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
afterAll(() => rmSync(dir, { recursive: true }));

async function build(target: "node" | "browser"): Promise<string> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "index.ts")],
    outdir: dir,
    naming: `sdk-${target}.mjs`,
    target,
    format: "esm",
    minify: true,
  });
  const [bundle] = built.outputs;
  if (bundle === undefined) throw new Error("nothing was built");
  return bundle.path;
}

test.each(["node", "browser"] as const)("the bundle for %s is small and stands alone", async (target) => {
  const path = await build(target);
  expect(statSync(path).size).toBeLessThan(80_000);
  const imports = new Bun.Transpiler({ loader: "js" }).scanImports(await Bun.file(path).text());
  expect(imports).toEqual([]);
});

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
    const path = await build("node");
    const child = Bun.spawn(["node", join(import.meta.dir, "../fixtures/on-node.mjs"), path], {
      env: { PATH: process.env.PATH ?? "", HOLDFAST_URL: server.url.href, HOLDFAST_TOKEN: fake.token },
      stdout: "pipe",
      stderr: "inherit",
    });
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
