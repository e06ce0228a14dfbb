import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestKeeper } from "../test-keeper.ts";
import { oomKills } from "./oom.ts";

test.each([
  ["cgroup v2", "memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", 2],
  ["cgroup v1", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7],
  ["something else", "memory.stat", "oom_kill 9\n", undefined],
])("%s", (_, file, content, count) => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-oom-"));
  writeFileSync(join(dir, file), content);
  expect(oomKills(dir)).toBe(count);
  rmSync(dir, { recursive: true });
});

test("a SIGKILL is out of memory only if the kernel counted one meanwhile", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-oom-"));
  writeFileSync(join(dir, "memory.events"), "oom_kill 1\n");
  await using keeper = await startTestKeeper({ boot: { memoryCgroupDir: dir } });
  const run = async (command: string) =>
    (await keeper.call("/v1/exec", { command, timeoutMs: 5000 })).body.oomKilled;
  expect(await run("kill -9 $$")).toBe(false);
  expect(await run(`echo oom_kill 2 >${dir}/memory.events; kill -9 $$`)).toBe(true);
  expect(await run(`echo oom_kill 3 >${dir}/memory.events; kill -15 $$`)).toBe(false);
  rmSync(dir, { recursive: true });
});
