import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe as describeProcess, listProcesses } from "./engine/proc-table.ts";
import { startTestKeeper, type TestKeeper } from "./test-keeper.ts";

/** The compiled keeper as PID 1 of its own namespaces, in root file systems with and without anything in them. */

let bundle: string;
beforeAll(() => {
  const script = join(import.meta.dir, "../../../scripts/build-keeper.ts");
  const { stdout, exitCode, stderr } = Bun.spawnSync([process.execPath, script]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  bundle = stdout.toString().trim();
}, 60_000);

const host = [
  "--ro-bind",
  "/usr",
  "/usr",
  "--symlink",
  "usr/bin",
  "/bin",
  "--symlink",
  "usr/lib",
  "/lib",
  "--symlink",
  "usr/lib64",
  "/lib64",
];
const busyboxPath = Bun.which("busybox");
const busybox = ["sh", "echo", "cat", "sleep"].flatMap((name) => [
  "--ro-bind",
  busyboxPath ?? "",
  `/bin/${name}`,
]);

/** Inside, the socket and the state directory are where a provider puts them. */
function startPid1(root: readonly string[], state: readonly string[] = []): Promise<TestKeeper> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  mkdirSync(join(dir, "run"));
  const inside = "/.holdfast";
  const argv = [
    ...[
      "bwrap",
      "--unshare-all",
      "--as-pid-1",
      "--new-session",
      "--cap-drop",
      "ALL",
      "--uid",
      "1000",
      "--gid",
      "1000",
    ],
    ...["--clearenv", ...root, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"],
    ...["--ro-bind", bundle, `${inside}/bin`, "--bind", join(dir, "run"), `${inside}/run`],
    ...(state.length > 0 ? state : ["--dir", `${inside}/state`]),
    ...[
      `${inside}/bin/ld.so`,
      "--library-path",
      `${inside}/bin/lib`,
      `${inside}/bin/keeper`,
      "--boot-fd",
      "3",
      "hf-test",
    ],
  ];
  const boot = { socketPath: `${inside}/run/k.sock`, stateDir: `${inside}/state`, cwd: "/tmp" };
  return startTestKeeper({ dir, argv, boot, socketPath: join(dir, "run/k.sock") });
}

const exec = async (keeper: TestKeeper, request: Record<string, unknown>) =>
  (await keeper.call("/v1/exec", request)).body;

describe("starts and runs commands in", () => {
  test("the host's own files", async () => {
    await using keeper = await startPid1(host);
    expect(await exec(keeper, { command: "echo $$; cat /proc/1/comm" })).toMatchObject({
      shell: "bash",
      exitCode: 0,
    });
  });

  test.skipIf(busyboxPath === null)("a root with nothing but busybox (package busybox-static)", async () => {
    await using keeper = await startPid1(busybox);
    expect(await exec(keeper, { command: "echo hi" })).toMatchObject({ shell: "sh", stdout: "hi\n" });
  });

  test("an empty root", async () => {
    await using keeper = await startPid1([]);
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
    keeper = await startPid1(host);
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
    await Bun.sleep(400);
    expect((await states()).filter((line: string) => line.includes(" Z "))).toEqual([]);
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
      stdout: "500\n0\n",
    });
  });

  test("what cannot be attributed to a killed command is listed, not hidden", async () => {
    // A new session, an orphan, and no marker: nothing is left that says where it came from.
    const command = "(env -i setsid sleep 777 &); sleep 0.2; sleep 100";
    const answer = await exec(keeper, { command, timeoutMs: 500 });
    expect(answer.kill).toMatchObject({
      survivors: [],
      unattributed: [{ pid: expect.any(Number), command: "sleep 777" }],
    });
    await exec(keeper, { command: ["kill", String(answer.kill.unattributed[0].pid)] });
  });
});

test("SIGTERM ends everything in the sandbox, then the keeper, and nothing is left", async () => {
  await using keeper = await startPid1(host);
  await keeper.call("/v1/processes", { command: "(env -i setsid sleep 778 &); trap '' TERM; sleep 779" });
  await exec(keeper, { command: "sleep 778 & sleep 0.1" });
  const sleepers = () => listProcesses().filter((entry) => /^sleep 77[89]$/.test(describeProcess(entry)));
  expect(sleepers().length).toBe(3);
  const inside = listProcesses().find(({ parent }) => parent === keeper.child.pid);
  process.kill(inside?.pid ?? 0, "SIGTERM");
  await keeper.child.exited;
  expect(sleepers()).toEqual([]);
}, 10_000);

test("a full disk: output is not lost silently, there is room to look around, then commands are refused with the reason", async () => {
  const state = ["--size", "2000000", "--tmpfs", "/.holdfast/state"];
  await using keeper = await startPid1(host, state);
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
}, 15_000);
