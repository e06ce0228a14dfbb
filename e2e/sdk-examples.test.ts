import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, run, TestServer } from "./harness.ts";
import { asModule, examples, undocumented } from "./sdk-examples.ts";
import { prepareDirectory, Stage } from "./sdk-things.ts";

// A hundred programs: seconds on a machine that does nothing else.
setDefaultTimeout(300_000);

const all = examples();
const file = join(root, "build/sdk-examples.ts");
const config = join(root, "build/sdk-examples.json");
const dir = mkdtempSync(join(tmpdir(), "holdfast-examples-"));
const before = { cwd: process.cwd(), log: console.log, env: { ...process.env } };

let server: TestServer;
beforeAll(async () => {
  mkdirSync(join(root, "build"), { recursive: true });
  writeFileSync(file, asModule(all));
  writeFileSync(config, JSON.stringify({ extends: "../tsconfig.json", include: [], files: [file] }));
  server = await TestServer.start();
});
afterAll(async () => {
  Object.assign(console, { log: before.log });
  process.env = before.env;
  process.chdir(before.cwd);
  await server.dispose();
  rmSync(dir, { recursive: true });
  for (const made of [file, config]) rmSync(made);
});

test("everything public has a comment, and everything that can be called an example", () => {
  expect(undocumented()).toEqual([]);
});

test("every example has the right types", async () => {
  expect(await run([join(root, "node_modules/.bin/tsc"), "-p", config])).toMatchObject({
    exitCode: 0,
    stdout: "",
  });
});

test("every example runs", async () => {
  Object.assign(process.env, { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token, XDG_STATE_HOME: dir });
  const stage = new Stage();
  await prepareDirectory(dir, stage);
  process.chdir(dir);
  console.log = () => undefined;
  const programs = (await import(file)).run;
  const failed: string[] = [];
  for (const example of all.filter(({ runs }) => runs)) {
    const things = await stage.thingsFor(example);
    try {
      await programs[example.at](things);
    } catch (error) {
      failed.push(`${example.at} ${error}`);
    }
    await stage.clearAfter(example);
  }
  expect(failed).toEqual([]);
});
