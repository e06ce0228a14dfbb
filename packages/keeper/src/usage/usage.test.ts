import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Usage } from "@holdfast/protocol";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";
import { memoryUse } from "./memory-use.ts";

setDefaultTimeout(120_000);

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startTestKeeper();
});
afterAll(() => keeper[Symbol.asyncDispose]());

const sample = async (): Promise<Usage> => (await keeper.call("/v1/usage")).body;

test("CPU counts what runs and what has ended; memory and processes what is there; files the disk", async () => {
  writeFileSync(join(keeper.dir, "file"), new Uint8Array(300_000));
  const before = await sample();
  expect(before.diskBytes).toBeGreaterThan(300_000);
  expect(before.isDiskWhole).toBe(true);
  await keeper.call("/v1/exec", { command: "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done" });
  const after = await sample();
  expect(after.cpuMs - before.cpuMs).toBeGreaterThanOrEqual(20);
  const { body } = await keeper.call("/v1/processes", { command: ["sleep", "600"] });
  const during = await sample();
  expect(during.processes).toBe(before.processes + 1);
  expect(during.memoryBytes).toBeGreaterThan(0);
  expect(during.inside).not.toBe(after.inside);
  await keeper.request(`/v1/processes/${body.processId}/kill`, { method: "POST" });
});

test("a follower gets one sample after the other, and to look is no use", async () => {
  await keeper.call("/v1/touch", {});
  const response = await keeper.request("/v1/usage?follow=true&everyMs=500");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  for (let no = 0; no < 2; no++) {
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toStartWith('data: {"at":');
  }
  await reader.cancel();
  expect((await keeper.call("/v1/activity")).body.idleForMs).toBeGreaterThanOrEqual(400);
});

test.each([
  ["v2", { "memory.current": "5000\n", "memory.max": "max\n", "memory.stat": "inactive_file 1000\n" }, {}],
  [
    "v1",
    {
      "memory.usage_in_bytes": "5000\n",
      "memory.limit_in_bytes": "9000\n",
      "memory.stat": "inactive_file 1000\n",
    },
    { memoryLimitBytes: 9000 },
  ],
])("memory by cgroup %s is without what can be dropped at once", (_, files, more) => {
  const dir = mkdtempSync(join(keeper.dir, "group-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text ?? "");
  expect(memoryUse(dir, [])).toEqual({ memoryBytes: 4000, memoryBy: "cgroup", ...more });
  rmSync(dir, { recursive: true });
});
