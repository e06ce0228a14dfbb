import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";

import { refOf, ShellProcess } from "./shell-process.ts";
import { testSessions } from "./test-sessions.ts";

for (const shell of ["bash", "sh"] as const) {
  test(`a session of ${shell} remembers nothing of the commands that it has run`, async () => {
    await using sandbox = testSessions();
    const { run } = await sandbox.create({ shell });
    const promises = () => {
      Bun.gc(true);
      return heapStats().objectTypeCounts.Promise ?? 0;
    };
    for (let i = 0; i < 20; i++) await run(":");
    const before = promises();
    for (let i = 0; i < 200; i++) await run(":");
    expect(promises() - before).toBeLessThan(100);
  });
}

test("whether a shell lives is known at once, and by its number alone as well", async () => {
  await using child = Bun.spawn(["sleep", "60"]);
  const [asked, released] = [new ShellProcess(refOf(child.pid)), new ShellProcess(refOf(child.pid))];
  released.release();
  expect([asked.isAlive, released.isAlive]).toEqual([true, true]);
  child.kill("SIGKILL");
  await child.exited;
  expect([asked.isAlive, released.isAlive]).toEqual([false, false]);
  expect(new ShellProcess({ pid: process.pid, startTime: 1 }).isAlive).toBe(false);
  asked.release();
});

test("the end of a shell is told once to each, also to who asks later, and not to who left", async () => {
  const shell = new ShellProcess(refOf(process.pid));
  const told: string[] = [];
  shell.onEnd(() => told.push("first"));
  shell.onEnd(() => told.push("left"))();
  const waiting = shell.endedWithin(60_000);
  shell.ended({ how: "died", exitCode: 1, signal: null });
  shell.ended({ how: "died", exitCode: 2, signal: null });
  await waiting;
  shell.onEnd((end) => told.push(JSON.stringify(end)));
  expect(told).toEqual(["first", '{"how":"died","exitCode":1,"signal":null}']);
  await new ShellProcess(refOf(process.pid)).endedWithin(1);
  shell.release();
});

test("a storm of signals that the shell traps loses no end of a command and no state", async () => {
  await using sandbox = testSessions();
  const { run } = await sandbox.create();
  await run("trap 'T=$((T+1))' USR1; ( while :; do kill -USR1 $$; done ) & P=$!");
  for (let i = 1; i <= 50; i++) {
    const { stdout, restored } = await run("echo $((X+=1))");
    expect([stdout, restored]).toEqual([`${i}\n`, undefined]);
  }
  const { stdout } = await run("kill $P; echo $((X == 50 && T > 50))");
  expect(stdout).toBe("1\n");
});
