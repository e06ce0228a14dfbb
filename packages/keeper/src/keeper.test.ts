import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { FENCE_HEADER, type KeeperBoot } from "@holdfast/protocol";
import { startKeeper } from "./keeper.ts";
import { FakeTimers } from "./terminal/fake-timers.ts";
import { startTestKeeper, type TestKeeper } from "./test-keeper.ts";

describe("who may speak", () => {
  test("without the secret nothing is answered", async () => {
    await using keeper = await startTestKeeper();
    for (const Authorization of [
      "",
      "Bearer ",
      "Bearer wrong",
      `Basic ${keeper.boot.secret}`,
      `Bearer ${keeper.boot.secret}x`,
    ]) {
      const response = await keeper.request("/v1/keeper", { headers: { Authorization } });
      expect([response.status, (await response.json()).error.code]).toEqual([401, "unauthenticated"]);
    }
    expect((await keeper.request("/v1/nothing", { headers: { Authorization: "" } })).status).toBe(404);
  });

  test("nothing runs before admission, and only the instance that is meant is admitted", async () => {
    await using keeper = await startTestKeeper({ admit: "no" });
    const file = join(keeper.dir, "ran");
    expect((await keeper.call("/v1/exec", { command: `touch ${file}` })).body.error).toMatchObject({
      code: "wrong_state",
      started: "no",
      retryable: true,
    });
    for (const wrong of [
      { instanceId: "other", generation: 1 },
      { instanceId: "instance-1", generation: 2 },
    ]) {
      expect((await keeper.call("/v1/admit", { ...wrong, fence: 1 })).body.error.code).toBe("wrong_state");
    }
    expect((await keeper.call("/v1/keeper")).body.admitted).toBe(false);
    const admit = { instanceId: "instance-1", generation: 1, fence: 1 };
    expect((await keeper.call("/v1/admit", admit)).body).toMatchObject({
      admitted: true,
      fence: 1,
      shell: "bash",
    });
    expect((await keeper.call("/v1/admit", admit)).status).toBe(200);
    expect(existsSync(file)).toBe(false);
  });

  test("a spare that is given away has its owner's environment, was used just now, and is never a spare again", async () => {
    await using keeper = await startTestKeeper({ admit: "no" });
    const admit = { instanceId: "instance-1", generation: 1, fence: 1 };
    const told = async (more: object) => (await keeper.call("/v1/admit", { ...admit, ...more })).body;
    expect(await told({ spare: true })).toMatchObject({ admitted: true, isOwned: false });
    const idle = (await keeper.call("/v1/activity")).body.idleForMs;
    const env = { PATH: "/nowhere", MINE: "1" };
    expect(await told({ env, maxLifetimeSeconds: 900 })).toMatchObject({ isOwned: true, shell: "bash" });
    expect((await keeper.call("/v1/activity")).body.idleForMs).toBeLessThan(idle);
    const { stdout } = (await keeper.call("/v1/exec", { command: "echo $PATH $MINE $HOME" })).body;
    expect(stdout).toBe(`/nowhere 1 ${keeper.dir}\n`);
    expect((await told({ spare: true, maxLifetimeSeconds: 1 })).error.code).toBe("wrong_state");
    expect((await keeper.call("/v1/keeper")).body).toMatchObject({ isOwned: true });
  });

  test("a server that was replaced is refused, a newer one is believed", async () => {
    await using keeper = await startTestKeeper();
    const info = (fence: string) => keeper.request("/v1/keeper", { headers: { [FENCE_HEADER]: fence } });
    expect((await info("7")).status).toBe(200);
    const stale = await info("6");
    expect([stale.status, (await stale.json()).error.code]).toEqual([409, "fence_stale"]);
    expect((await (await info("7")).json()).fence).toBe(7);
    expect((await info("x")).status).toBe(400);
    const none = await fetch("http://keeper/v1/keeper", {
      unix: keeper.boot.socketPath,
      headers: { Authorization: `Bearer ${keeper.boot.secret}` },
    });
    expect(none.status).toBe(400);
  });
});

test("a keeper that nobody admits ends after a minute, an admitted one does not", async () => {
  const timers = new FakeTimers();
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const boot = bootIn(dir);
  const forgotten = await startKeeper(boot, { timers });
  timers.advance(59_999);
  expect(existsSync(boot.socketPath)).toBe(true);
  timers.advance(1);
  await forgotten.over;
  expect([existsSync(boot.socketPath), timers.pending]).toEqual([false, 0]);

  const wanted = await startKeeper(boot, { timers });
  const headers = { Authorization: `Bearer ${boot.secret}` };
  const body = JSON.stringify({ instanceId: boot.instanceId, generation: boot.generation, fence: 1 });
  await fetch("http://keeper/v1/admit", { unix: boot.socketPath, method: "POST", headers, body });
  timers.advance(3_599_999);
  expect(existsSync(boot.socketPath)).toBe(true);
  wanted.shutdown({ cause: "told" });
  await wanted.over;
  expect(timers.pending).toBe(0);
  rmSync(dir, { recursive: true });
});

test("the socket is for its owner only, and a stale one is replaced", async () => {
  await using keeper = await startTestKeeper();
  expect(statSync(keeper.boot.socketPath).mode & 0o777).toBe(0o600);
  await keeper.crash();
  expect(existsSync(keeper.boot.socketPath)).toBe(true);
  await using second = await startTestKeeper({ dir: keeper.dir });
  expect((await second.call("/v1/keeper")).status).toBe(200);
});

test("shutdown ends the work, records it, and removes the socket", async () => {
  await using keeper = await startTestKeeper();
  await keeper.call("/v1/processes", {
    command: "trap 'echo bye; exit 5' TERM; sleep 100 & wait",
    processId: "polite",
  });
  await keeper.call("/v1/processes", {
    command: [
      "python3",
      "-c",
      "import signal,time; signal.signal(15, signal.SIG_IGN); print(1,flush=True); time.sleep(99)",
    ],
    processId: "rude",
  });
  const follow = await keeper.request("/v1/processes/rude/logs?follow=1");
  for await (const chunk of follow.body ?? []) if (Buffer.from(chunk).includes("event: stdout")) break;
  expect((await keeper.call("/v1/shutdown", { graceMs: 300 })).status).toBe(202);
  expect(await keeper.child.exited).toBe(0);
  expect(keeper.processes()).toEqual([]);
  expect(existsSync(keeper.boot.socketPath)).toBe(false);
  await using next = await startTestKeeper({ dir: keeper.dir });
  const { processes } = (await next.call("/v1/processes")).body;
  const status = processes.map(({ processId, status }: { processId: string; status: unknown }) => [
    processId,
    status,
  ]);
  expect(Object.fromEntries(status)).toMatchObject({
    polite: { state: "exited", exitCode: 5 },
    rude: { state: "exited", signal: "SIGKILL" },
  });
});

describe("after the keeper's death", () => {
  async function crashedWith(
    work: (keeper: TestKeeper) => Promise<void>,
    between: (keeper: TestKeeper) => void,
  ) {
    const keeper = await startTestKeeper();
    await work(keeper);
    await keeper.crash();
    between(keeper);
    return startTestKeeper({ dir: keeper.dir });
  }

  test("finished work is known with its output, running work is lost, and neither runs again", async () => {
    await using keeper = await crashedWith(
      async (first) => {
        await first.call("/v1/exec", { command: "echo done; echo x >>runs", commandId: "done" });
        await first.call("/v1/exec", { command: "echo half; sleep 100", commandId: "half", yieldMs: 100 });
        await first.call("/v1/processes", { command: "echo p; sleep 100", processId: "proc" });
        await Bun.sleep(50);
      },
      () => {},
    );
    const again = await keeper.call("/v1/exec", { command: "echo done; echo x >>runs", commandId: "done" });
    expect(again.body).toMatchObject({ status: "exited", exitCode: 0, stdout: "done\n" });
    expect(readFileSync(join(keeper.dir, "runs"), "utf8")).toBe("x\n");
    const half = await keeper.call("/v1/exec", { command: "echo half; sleep 100", commandId: "half" });
    expect(half.body).toEqual({ commandId: "half", status: "lost", reason: "keeper_lost" });
    expect((await keeper.call("/v1/processes/proc")).body).toMatchObject({
      status: { state: "lost", reason: "keeper_lost" },
      log: { firstOffset: 0, nextOffset: 2 },
    });
    const logs = await (await keeper.request("/v1/processes/proc/logs?follow=1")).text();
    expect(logs).toBe(
      'id: 2\nevent: stdout\ndata: {"offset":0,"data":"cAo="}\n\nid: 2\nevent: lost\ndata: {"offset":2,"reason":"keeper_lost"}\n\n',
    );
  });

  test.each([
    ["a torn last line", (path: string) => writeFileSync(path, `${readFileSync(path, "utf8")}{"line":"beg`)],
    [
      "garbage before it",
      (path: string) =>
        writeFileSync(path, `\0\xff{}\n[]\nnull\n{"line":"begin"}\n${readFileSync(path, "utf8")}`),
    ],
    [
      "forged ids that are paths",
      (path: string) => writeFileSync(path, readFileSync(path, "utf8") + forged("../../x")),
    ],
  ])("the journal survives %s", async (_, damage) => {
    await using keeper = await crashedWith(
      async (first) => void (await first.call("/v1/exec", { command: "echo kept", commandId: "kept" })),
      (first) => damage(join(first.boot.stateDir, "journal")),
    );
    expect((await keeper.call("/v1/commands/kept")).body).toMatchObject({ stdout: "kept\n" });
    expect((await keeper.call("/v1/exec", { command: "echo new" })).body).toMatchObject({ stdout: "new\n" });
  });

  test.each([
    ["a directory", (path: string) => mkdirSync(path)],
    ["a link elsewhere", (path: string) => symlinkSync("/etc/passwd", path)],
    ["nothing", () => {}],
  ])("%s where the journal was", async (_, put) => {
    await using keeper = await crashedWith(
      async () => {},
      (first) => {
        rmSync(join(first.boot.stateDir, "journal"));
        put(join(first.boot.stateDir, "journal"));
      },
    );
    expect((await keeper.call("/v1/exec", { command: "echo new" })).body).toMatchObject({ stdout: "new\n" });
    expect(readFileSync("/etc/passwd", "utf8")).not.toContain("begin");
  });
});

test("the work may delete the state directory: commands go on", async () => {
  await using keeper = await startTestKeeper();
  rmSync(keeper.boot.stateDir, { recursive: true });
  expect((await keeper.call("/v1/exec", { command: "echo on", commandId: "on" })).body).toMatchObject({
    stdout: "on\n",
  });
  expect((await keeper.call("/v1/commands/on")).body).toMatchObject({ stdout: "on\n" });
});

test("a signal that comes before it has read who it is ends it all the same", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const boot = bootIn(dir);
  const main = join(import.meta.dir, "main.ts");
  const child = Bun.spawn([process.execPath, main, "--boot-fd", "0", "test"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  while (!catches(child.pid, constants.signals.SIGTERM)) await Bun.sleep(2);
  child.kill("SIGTERM");
  child.stdin.write(JSON.stringify(boot));
  child.stdin.end();
  expect([await child.exited, child.signalCode, existsSync(boot.socketPath)]).toEqual([0, null, false]);
  rmSync(dir, { recursive: true });
});

function catches(pid: number, signal: number): boolean {
  const mask = /^SigCgt:\t(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return ((BigInt(`0x${mask ?? 0}`) >> BigInt(signal - 1)) & 1n) === 1n;
}

test("a boot message in a file is gone before the keeper answers", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const boot = bootIn(dir);
  const file = join(dir, "boot.json");
  writeFileSync(file, JSON.stringify(boot), { mode: 0o400 });
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "main.ts"), "--boot-file", file, "test"]);
  while (!existsSync(boot.socketPath)) await Bun.sleep(2);
  expect(existsSync(file)).toBe(false);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  rmSync(dir, { recursive: true });
});

test("a wrong boot message is said plainly", async () => {
  const main = join(import.meta.dir, "main.ts");
  const { stderr, exitCode } = Bun.spawnSync([process.execPath, main, "--boot-fd", "99", "x"]);
  expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining("holdfast keeper: EBADF")]);
  const usage = Bun.spawnSync([process.execPath, main]);
  expect([usage.exitCode, usage.stderr.toString()]).toEqual([
    1,
    "holdfast keeper: usage: keeper --boot-fd N NAME, or keeper --boot-file PATH NAME\n",
  ]);
});

function forged(id: string): string {
  const record = { id, kind: "exec", fingerprint: "x", startedAt: 1, facts: { shell: "bash" } };
  return `${JSON.stringify({ line: "begin", record })}\n`;
}

function bootIn(dir: string): KeeperBoot {
  const who = { sandboxId: `sbx-${crypto.randomUUID()}`, instanceId: "instance-1", generation: 1 };
  const places = { socketPath: join(dir, "keeper.sock"), stateDir: join(dir, "state"), cwd: dir };
  return { ...who, ...places, secret: "a-secret-of-at-least-32-characters", env: {} };
}
