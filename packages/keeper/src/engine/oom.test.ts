import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestKeeper } from "../test-keeper.ts";
import { canMakeGroups, makeMemoryGroup } from "../test-memory-group.ts";
import { hostRoot, startPid1 } from "../test-pid1.ts";
import { OomCounter } from "./oom.ts";

test.each([
  ["cgroup v2", "memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", 2],
  ["cgroup v1", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7],
  ["something else", "memory.stat", "oom_kill 9\n", undefined],
])("%s", (_, file, content, count) => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-oom-"));
  writeFileSync(join(dir, file), content);
  const counter = new OomCounter(dir);
  expect(counter.read()).toBe(count);
  counter.close();
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

test.skipIf(!canMakeGroups)(
  "where memory really runs out, the work is taken and said so, and the keeper goes on (needs root)",
  async () => {
    await using group = makeMemoryGroup(128 * 1024 * 1024);
    await using keeper = await startPid1({
      root: [...hostRoot, "--ro-bind", group.dir, "/memory"],
      launcher: group.launcher,
      boot: { memoryCgroupDir: "/memory" },
    });
    const exec = async (command: string) => (await keeper.call("/v1/exec", { command })).body;
    const greedy = "exec tail /dev/zero";
    expect(await exec(greedy)).toMatchObject({ oomKilled: true, signal: "SIGKILL", exitCode: 137 });
    expect(await exec("echo usable; kill -9 $$")).toMatchObject({ oomKilled: false, stdout: "usable\n" });
    await keeper.call("/v1/processes", { command: greedy, processId: "greedy" });
    expect((await keeper.call("/v1/processes/greedy/wait")).body.status).toMatchObject({
      state: "exited",
      oomKilled: true,
    });
  },
  120_000,
);
