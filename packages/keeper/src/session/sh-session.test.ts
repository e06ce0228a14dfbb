import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestSession, type TestSessions, testSession, testSessions } from "./test-sessions.ts";

let all: TestSessions;
let session: TestSession;
beforeAll(async () => {
  all = testSessions({ env: { INJECTED: "top 'secret'\nof two lines" } });
  session = await all.create({ shell: "sh", sessionId: "sh" });
});
afterAll(async () => {
  await all[Symbol.asyncDispose]();
  expect(all.processes()).toEqual([]);
});

test("it says what it can carry", () => {
  const { shell, carries } = session.session.describe();
  expect({ shell, carries }).toEqual({
    shell: "sh",
    carries: ["cwd", "variables", "options", "umask", "traps"],
  });
});

test("state from command to command, functions and aliases too", async () => {
  await session.run(
    "A='x  y'; export B=b; cd /usr/lib; f() { echo in f; }; alias hi='echo hi'; umask 027; set -- 1 2",
  );
  const { stdout } = await session.run('echo "$A" $(printenv B) $PWD $(f) $(umask) $#\nhi', { stdin: "" });
  expect(stdout).toBe("x  y b /usr/lib in f 0027 2\nhi\n");
});

const SHOWN = 'echo "$A" $(printenv B) $PWD $(umask) "$INJECTED"';
const IS = "x  y b /usr/lib 0027 top 'secret'\nof two lines\n";
const hostile: readonly { text: string; exitCode: number; exited: boolean }[] = [
  { text: "'", exitCode: 2, exited: false },
  { text: 'echo "', exitCode: 2, exited: false },
  { text: "cat <<EOF", exitCode: 0, exited: false },
  { text: "if true; then", exitCode: 2, exited: false },
  { text: "}", exitCode: 2, exited: false },
  { text: "return 3", exitCode: 3, exited: false },
  { text: "break 9", exitCode: 0, exited: false },
  { text: "nosuchcommand", exitCode: 127, exited: false },
  { text: "exec >/dev/null", exitCode: 0, exited: false },
  { text: "A=lost; exit 3", exitCode: 3, exited: true },
  { text: "set -e; false", exitCode: 1, exited: true },
  { text: "kill -9 $$", exitCode: 137, exited: true },
  { text: "kill 0; sleep 1", exitCode: 143, exited: true },
  { text: "exec true", exitCode: 0, exited: true },
  { text: "command() { :; }", exitCode: 137, exited: true },
];
for (const { text, exitCode, exited } of hostile) {
  test(JSON.stringify(text), async () => {
    const result = await session.run(text);
    expect([result.exitCode, result.shellExited, result.stateKept]).toEqual([exitCode, exited, !exited]);
    const ok = await session.run("echo ok");
    expect([ok.stdout, ok.stderr, ok.exitCode]).toEqual(["ok\n", "", 0]);
    expect(ok.restored?.from).toBe(exited ? "savepoint" : undefined);
    expect((await session.run(SHOWN)).stdout).toBe(IS);
  });
}

test("status, streams, stdin and timeout", async () => {
  await session.run("(exit 9)");
  expect(await session.run("echo $?; echo e >&2; cat", { stdin: "in" })).toMatchObject({
    stdout: "9\nin",
    stderr: "e\n",
  });
  expect(await session.run("A=half; sleep 60", { timeoutMs: 100 })).toMatchObject({
    exitCode: 124,
    timedOut: true,
  });
  expect((await session.run(SHOWN)).stdout).toBe(IS);
});

test("a new keeper brings it back, without the injected values on disk", async () => {
  await session.run("trap 'echo usr1' USR1");
  await all.sessions.stop();
  expect(readFileSync(join(all.dir, "state/sessions/sh/checkpoint"), "utf8")).not.toContain("two lines");
  for (const pid of all.processes()) process.kill(pid, "SIGKILL");
  await using next = all.nextKeeper({ INJECTED: "new" });
  const found = testSession(next.sessions.get("sh"));
  const result = await found.run('echo "$A" $B $PWD $INJECTED; kill -USR1 $$');
  expect(result.stdout).toBe("x  y b /usr/lib new\nusr1\n");
  expect(result.restored).toEqual({ because: "keeper_lost", from: "checkpoint", commandsLost: 0 });
});
