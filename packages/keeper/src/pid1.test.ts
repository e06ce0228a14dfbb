import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { describe as describeProcess, listProcesses } from "./engine/proc-table.ts";
import type { TestKeeper } from "./test-keeper.ts";
import { startPid1 } from "./test-pid1.ts";

/** The compiled keeper as PID 1 of its own namespaces. In a root file system of busybox's: busybox.test.ts. */

// The first one to start a keeper may have to build it.
setDefaultTimeout(120_000);

const exec = async (keeper: TestKeeper, request: Record<string, unknown>) =>
  (await keeper.call("/v1/exec", request)).body;

describe("starts and runs commands in", () => {
  test("the host's own files", async () => {
    await using keeper = await startPid1();
    expect(await exec(keeper, { command: "echo $$; cat /proc/1/comm" })).toMatchObject({
      shell: "bash",
      exitCode: 0,
    });
  });

  test("an empty root", async () => {
    await using keeper = await startPid1({ root: [] });
    expect(await exec(keeper, { command: "echo hi" })).toMatchObject({
      error: { code: "unsupported", started: "no" },
    });
    const command = ["/.holdfast/bin/ld.so", "--version"];
    expect(await exec(keeper, { command })).toMatchObject({ shell: "none", exitCode: 0 });
    expect((await keeper.call("/v1/keeper")).body.shell).toBe("none");
  });
});

describe("as PID 1", () => {
  let keeper: TestKeeper;
  beforeAll(async () => {
    keeper = await startPid1();
  });
  afterAll(async () => {
    await keeper[Symbol.asyncDispose]();
  });
  const states = async () =>
    (await exec(keeper, { command: "cut -d' ' -f1-4 /proc/[0-9]*/stat 2>/dev/null" })).stdout
      .trim()
      .split("\n");

  test("orphans are reaped, and the exit of our own children is not lost", async () => {
    await exec(keeper, { command: "for i in $(seq 50); do (sleep 0.05 &); done" });
    for (let i = 0; i < 20; i++) expect((await exec(keeper, { command: `exit ${i}` })).exitCode).toBe(i);
    // Reaped some time after they have ended; one that stays keeps the test from ending.
    while ((await states()).some((line: string) => line.includes("(sleep)"))) await Bun.sleep(50);
  });

  test("its memory and environment cannot be read from inside", async () => {
    const { stderr, exitCode } = await exec(keeper, { command: "cat /proc/1/environ" });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("Permission denied")]);
  });

  test("kill -9 -1 from inside does not end it", async () => {
    expect(await exec(keeper, { command: "kill -9 -1" })).toMatchObject({ exitCode: expect.any(Number) });
    expect(await exec(keeper, { command: "echo still here" })).toMatchObject({ stdout: "still here\n" });
  });

  test("work is preferred when memory runs out", async () => {
    expect(
      await exec(keeper, { command: "sleep 0.1; cat /proc/self/oom_score_adj /proc/1/oom_score_adj" }),
    ).toMatchObject({
      stdout: expect.stringMatching(/^5\d\d\n0\n$/),
    });
  });
});

test("work that an orphan did, unseen between two checks, is use until its end", async () => {
  await using keeper = await startPid1();
  const burn = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
  await exec(keeper, { command: `(env -i setsid sh -c '${burn}' &)`, commandId: "c1" });
  const activity = async () => (await keeper.call("/v1/activity")).body;
  while ((await activity()).heldAwakeBy.length === 0) await Bun.sleep(2);
  while ((await activity()).heldAwakeBy.length > 0) await Bun.sleep(5);
  // It is reaped some time after it has ended; if that is no use, the test does not end.
  const judge = async () => (await keeper.call("/v1/quiesce", { lifetimeMs: 60_000 })).body.because[0];
  while (!(await judge()).endsWith("s ago: what command c1 left running ended")) await Bun.sleep(5);
});

test("SIGTERM ends everything in the sandbox, then the keeper, and nothing is left", async () => {
  await using keeper = await startPid1();
  // Seen from outside, so by a command line that nothing else on this machine has.
  const sleep = `sleep 7${process.pid}`;
  await keeper.call("/v1/processes", { command: `(env -i setsid ${sleep} &); trap '' TERM; ${sleep}; true` });
  await exec(keeper, { command: `${sleep} & sleep 0.1` });
  const sleepers = () => listProcesses().filter((entry) => describeProcess(entry) === sleep);
  while (sleepers().length < 3) await Bun.sleep(5);
  const inside = listProcesses().find(({ parent }) => parent === keeper.child.pid);
  process.kill(inside?.pid ?? 0, "SIGTERM");
  await keeper.child.exited;
  expect(sleepers()).toEqual([]);
});

test("a full disk: output is not lost silently, there is room to look around, then commands are refused with the reason", async () => {
  const state = ["--size", "2000000", "--tmpfs", "/.holdfast/state"];
  await using keeper = await startPid1({ state });
  const request = {
    command: "head -c 5000000 /dev/zero",
    maxOutputBytes: 10,
    encoding: "base64",
    commandId: "big",
  };
  const big = await exec(keeper, request);
  expect(big).toMatchObject({
    exitCode: 0,
    stdout: btoa("\0".repeat(10)),
    truncated: { stdoutBytes: 4_999_990 },
    log: { nextOffset: 5_000_000 },
  });
  const logs = await (await keeper.request("/v1/commands/big/logs")).text();
  expect(logs).toContain("event: truncated");
  const fill = "dd if=/dev/zero of=/.holdfast/state/ballast bs=1k 2>/dev/null; exit 0";
  expect((await exec(keeper, { command: fill })).exitCode).toBe(0);
  for (let i = 0; i < 50; i++) expect((await exec(keeper, { command: `exit ${i}` })).exitCode).toBe(i);
  await exec(keeper, { command: `rm -f /.holdfast/state/journal.reserve; ${fill}` });
  let refused = await keeper.call("/v1/exec", { command: "true" });
  for (let i = 0; i < 100 && refused.status === 200; i++)
    refused = await keeper.call("/v1/exec", { command: "true" });
  expect([refused.status, refused.body.error]).toEqual([
    503,
    expect.objectContaining({
      code: "unavailable",
      started: "no",
      message: expect.stringContaining("disk is full"),
    }),
  ]);
});
