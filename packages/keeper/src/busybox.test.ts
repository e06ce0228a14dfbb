import { describe, expect, setDefaultTimeout } from "bun:test";
import { FENCE_HEADER, FrameDecoder, LOG_FRAMES_TYPE } from "@holdfast/protocol";
import { TestViewer } from "./terminal/test-viewer.ts";
import type { TestKeeper } from "./test-keeper.ts";
import { busyboxRoot, socketOf, startPid1 } from "./test-pid1.ts";
import { testWith } from "./test-with.ts";

/** The compiled keeper in a root file system that has busybox and nothing else: no bash, no glibc, no /etc. */

// The first one to start a keeper may have to build it.
setDefaultTimeout(120_000);

const test = testWith({ program: "busybox", from: "busybox-static" });

const exec = async (keeper: TestKeeper, request: Record<string, unknown>) =>
  (await keeper.call("/v1/exec", request)).body;

/** Everything that lives in the sandbox but the keeper and the one who looks. */
async function processesInside(keeper: TestKeeper): Promise<string[]> {
  const { stdout } = await exec(keeper, { command: ["ps", "-o", "stat,args"] });
  const lines: string[] = stdout.trim().split("\n").slice(1);
  return lines.filter((line) => !/^Z| ps -o| \/\.holdfast\//.test(line));
}

describe("exec", () => {
  const cases: [name: string, request: Record<string, unknown>, answer: Record<string, unknown>][] = [
    ["a text runs in sh", { command: "echo $0; exit 7" }, { shell: "sh", exitCode: 7, stdout: "/bin/sh\n" }],
    ["a death by signal", { command: "kill -SEGV $$" }, { exitCode: 139, signal: "SIGSEGV" }],
    ["both streams", { command: "echo a; echo b >/dev/stderr" }, { stdout: "a\n", stderr: "b\n" }],
    ["no stdin is an end of file", { command: "read x; echo $?" }, { stdout: "1\n" }],
    [
      "arguments as given",
      { command: ["printf", "%s|", "a b", "", "$x", "*\n"] },
      { stdout: "a b||$x|*\n|" },
    ],
    [
      "environment and folder",
      { command: "pwd; echo $A", cwd: "/bin", env: { A: "é" } },
      { stdout: "/bin\né\n" },
    ],
    ["a missing program", { command: ["bash"] }, { error: { code: "invalid_argument", started: "no" } }],
    [
      "a missing folder",
      { command: "pwd", cwd: "/no" },
      { error: { code: "invalid_argument", started: "no" } },
    ],
  ];

  test("behaves as elsewhere", async () => {
    await using keeper = await startPid1({ root: busyboxRoot() });
    for (const [name, request, answer] of cases) {
      expect({ name, answer: await exec(keeper, request) }).toMatchObject({ name, answer });
    }
    for (const exitCode of [0, 1, 126, 127, 255]) {
      expect(await exec(keeper, { command: `exit ${exitCode}` })).toMatchObject({ exitCode, signal: null });
    }
  });

  test("passes a large stdin whole", async () => {
    await using keeper = await startPid1({ root: busyboxRoot() });
    const stdin = "0123456789abcdef".repeat(500_000);
    const digest = new Bun.CryptoHasher("sha256").update(stdin).digest("hex");
    expect(await exec(keeper, { command: ["sha256sum"], stdin })).toMatchObject({ stdout: `${digest}  -\n` });
  });

  test("a timeout ends the tree, also what left its session and ignores the request to end", async () => {
    await using keeper = await startPid1({ root: busyboxRoot() });
    const deaf = "trap '' TERM HUP; sleep 1000";
    const command = `trap '' TERM; (setsid sh -c "${deaf}" &); sleep 1001 & sleep 1002`;
    expect(await exec(keeper, { command, timeoutMs: 500 })).toMatchObject({
      exitCode: 124,
      timedOut: true,
      kill: { verified: "lineage", survivors: [], unattributed: [] },
    });
    expect(await processesInside(keeper)).toEqual([]);
  });
});

test("process: stdin, a log with offsets, kill, and the same answer afterwards", async () => {
  await using keeper = await startPid1({ root: busyboxRoot() });
  const logs = async (since: number) => {
    const headers = { Accept: LOG_FRAMES_TYPE };
    const response = await keeper.request(`/v1/processes/p/logs?since=${since}`, { headers });
    const events = [...new FrameDecoder().push(await response.bytes())];
    return events.map((event) =>
      "bytes" in event ? `${event.type} ${event.offset} ${Buffer.from(event.bytes)}` : event.type,
    );
  };
  const request = { processId: "p", command: "echo one; read x; echo two $x >&2; exit 4" };
  expect((await keeper.call("/v1/processes", request)).body).toMatchObject({ status: { state: "running" } });
  await keeper.request("/v1/processes/p/stdin", { method: "POST", body: "three\n" });
  const ended = (await keeper.call("/v1/processes/p/wait?timeoutMs=20000")).body;
  expect(ended).toMatchObject({
    status: { state: "exited", exitCode: 4 },
    log: { firstOffset: 0, nextOffset: 14 },
  });
  expect(await logs(0)).toEqual(["stdout 0 one\n", "stderr 4 two three\n", "exit"]);
  expect(await logs(6)).toEqual(["stderr 6 o three\n", "exit"]);
  expect((await keeper.call("/v1/processes", request)).body).toEqual(ended);

  await keeper.call("/v1/processes", { processId: "q", command: "sleep 1000 & sleep 1001" });
  expect((await keeper.call("/v1/processes/q/kill", {})).body).toMatchObject({ status: { state: "exited" } });
  expect(await processesInside(keeper)).toEqual([]);
});

describe("terminal", () => {
  const connect = (keeper: TestKeeper, id: string) =>
    TestViewer.connect(`ws+unix://${socketOf(keeper)}:/v1/terminals/${id}/connect`, {
      Authorization: `Bearer ${keeper.boot.secret}`,
      [FENCE_HEADER]: "1",
    });

  test("typing, size, resize, Ctrl-C and the exit code", async () => {
    await using keeper = await startPid1({ root: busyboxRoot() });
    const made = await keeper.call("/v1/terminals", { id: "t", cols: 100, rows: 30 });
    expect(made).toMatchObject({ status: 201, body: { command: ["/bin/sh", "-l"], created: true } });
    const viewer = await connect(keeper, "t");
    viewer.type("tty; stty size; /bin/ls /proc/self/fd | wc -l\r");
    await viewer.sees(/\/dev\/pts\/0\r\n30 100\r\n4\r\n/);
    viewer.resize(132, 43);
    await viewer.until((v) => v.frame("resize")?.cols === 132);
    viewer.type("stty size\r");
    await viewer.sees(/43 132\r\n/);
    viewer.type("sh -c 'echo on; exec sleep 1000'\r");
    await viewer.sees(/\non\r\n/);
    viewer.type("\x03");
    await viewer.sees(/\^C/);
    viewer.type("echo code $?; exit 9\r");
    await viewer.ended();
    expect(viewer.text).toMatch(/code 130\r\n/);
    expect(viewer.frame("exit")?.exit).toMatchObject({ exitCode: 9, signal: null, cause: "program" });
  });

  test("destroy ends the program with everything it started", async () => {
    await using keeper = await startPid1({ root: busyboxRoot() });
    const command = "trap '' HUP TERM; setsid sleep 1000 & sleep 1001 & echo up; sleep 1002";
    await keeper.call("/v1/terminals", { id: "t", command });
    const viewer = await connect(keeper, "t");
    await viewer.sees(/up/);
    const reply = await keeper.request("/v1/terminals/t", { method: "DELETE" });
    expect(await reply.json()).toMatchObject({
      state: "exited",
      exit: { cause: "destroyed" },
      kill: { survivors: [], unattributed: [] },
    });
    await viewer.ended();
    expect(viewer.closed?.code).toBe(4003);
    expect(await processesInside(keeper)).toEqual([]);
  });
});
