import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { SessionCommandState } from "@holdfast/protocol";
import { isAlive, lookAt } from "../engine/proc-table.ts";
import { openDescriptors, type TestSessions, testSession, testSessions } from "./test-sessions.ts";

let all: TestSessions;
beforeAll(() => {
  all = testSessions({ env: { INJECTED: "top secret" } });
});
afterAll(async () => {
  await all[Symbol.asyncDispose]();
  expect(all.processes()).toEqual([]);
  expect(existsSync(all.dir)).toBe(false);
});

const gone = (pid: number) => {
  const entry = lookAt(pid);
  return entry === undefined || entry.state === "Z";
};

test("the whole result of a command", async () => {
  const session = await all.create({ sessionId: "whole" });
  const result = await session.run("echo out; echo err >/dev/stderr; (exit 3)", { commandId: "whole-1" });
  expect(result).toEqual({
    commandId: "whole-1",
    sessionId: "whole",
    status: "exited",
    shell: "bash",
    exitCode: 3,
    signal: null,
    timedOut: false,
    cancelled: false,
    oomKilled: false,
    durationMs: expect.any(Number),
    stdout: "out\n",
    stderr: "err\n",
    truncated: { stdoutBytes: 0, stderrBytes: 0 },
    log: { firstOffset: 0, nextOffset: 8 },
    ran: true,
    shellExited: false,
    stateKept: true,
  });
});

describe("state", () => {
  const carried: readonly { what: string; set: string; show: string; is: string }[] = [
    { what: "cwd", set: "cd /usr/lib", show: "pwd", is: "/usr/lib\n" },
    { what: "variables", set: "A='x  y'", show: 'echo "$A"; printenv A', is: "x  y\n" },
    { what: "exported variables", set: "export B=$'1\\n2'", show: "printenv B", is: "1\n2\n" },
    {
      what: "arrays",
      set: "C=(a 'b c' [7]=d)",
      show: "declare -p C",
      is: 'declare -a C=([0]="a" [1]="b c" [7]="d")\n',
    },
    { what: "maps", set: "declare -A D=([k]=v)", show: "declare -p D", is: 'declare -A D=([k]="v" )\n' },
    {
      what: "attributes",
      set: "declare -i I=1; declare -r RO=2",
      show: "I=I+1; echo $I; declare -p RO",
      is: '2\ndeclare -r RO="2"\n',
    },
    { what: "bytes", set: "Y=$'\\377\\001'", show: 'printf %s "$Y" | od -An -tx1', is: " ff 01\n" },
    { what: "functions", set: "f() { echo f:$1; }", show: "f 1", is: "f:1\n" },
    { what: "exported functions", set: "g() { echo g; }; export -f g", show: "bash -c g", is: "g\n" },
    {
      what: "aliases",
      set: "shopt -s expand_aliases; alias hi='echo hi'",
      show: "hi there",
      is: "hi there\n",
    },
    {
      what: "options",
      set: "set -o pipefail; shopt -s nullglob",
      show: "false | true; echo $? /nope*",
      is: "1\n",
    },
    { what: "flags", set: "set -fu", show: "echo $- *", is: "fhuBs *\n" },
    { what: "positional parameters", set: "set -- 1 '2 3' ''", show: 'echo $#; echo "$2"', is: "3\n2 3\n" },
    { what: "umask", set: "umask 0137", show: "umask", is: "0137\n" },
    { what: "traps", set: "trap 'echo caught' USR1", show: "kill -USR1 $$", is: "caught\n" },
    { what: "status", set: "(exit 9)", show: "echo $?", is: "9\n" },
    { what: "file descriptors", set: "exec 7<<<abc", show: "cat <&7", is: "abc\n" },
    { what: "what is unset", set: "unset HOME PATH OLDPWD", show: 'echo "[$HOME$PATH]"', is: "[]\n" },
  ];
  for (const { what, set, show, is } of carried) {
    test(`${what} from command to command`, async () => {
      const session = await all.create();
      await session.run(set);
      expect((await session.run(show)).stdout).toBe(is);
      await session.session.close();
    });
    if (what === "status") continue;
    test(`${what} over the death of the shell`, async () => {
      const session = await all.create();
      await session.run(set);
      await session.run("exit 1");
      const result = await session.run(show);
      expect([result.stdout, result.restored?.from]).toEqual([is, "savepoint"]);
      await session.session.close();
    });
  }

  test("background jobs go on, and can be waited for", async () => {
    const session = await all.create();
    await session.run("sleep 30 & J=$!");
    expect((await session.run("jobs -p; [[ $! == $J ]] && echo same")).stdout).toMatch(/^\d+\nsame\n$/);
    const { stdout } = await session.run("echo $J");
    await session.run("exit 2");
    expect(isAlive({ pid: Number(stdout), startTime: lookAt(Number(stdout))?.startTime ?? 0 })).toBe(true);
    expect((await session.run("kill $J && echo killed")).stdout).toBe("killed\n");
    await session.session.close();
  });

  test("two sessions know nothing of each other", async () => {
    const [one, two] = await Promise.all([all.create(), all.create()]);
    await Promise.all([one.run("A=1; cd /usr; f() { :; }"), two.run("A=2; cd /bin")]);
    expect((await one.run('echo $A "$PWD"')).stdout).toBe("1 /usr\n");
    expect((await two.run('echo $A "$PWD"; type -t f')).stdout).toMatch(/^2 \/(usr\/)?bin\n$/);
    await Promise.all([one.session.close(), two.session.close()]);
  });

  test("the session's own environment, and the sandbox's under it", async () => {
    const session = await all.create({ env: { MINE: "1", HOME: null }, cwd: "/usr" });
    const { stdout } = await session.run('echo $MINE [$HOME] $INJECTED "$PWD" $HOLDFAST_SESSION');
    expect(stdout).toBe(`1 [] top secret /usr ${session.session.facts.sessionId}\n`);
    await session.session.close();
  });
});

describe("output", () => {
  test("exact bytes, streams apart", async () => {
    const session = await all.create();
    const { stdout, stderr } = await session.run("printf 'a\\0\\377'; printf 'e\\200' >&2", {
      encoding: "base64",
    });
    expect([stdout, stderr].map((text) => Buffer.from(text, "base64").toString("hex"))).toEqual([
      "6100ff",
      "6580",
    ]);
    await session.session.close();
  });

  test("errors count the text's own lines; tracing and DEBUG traps see the text, and nothing of ours", async () => {
    const session = await all.create();
    for (const before of ["true", "false", "'", "exit 1", "set -x; set -v"]) await session.run(before);
    await session.run("set +xv; trap 'echo D' DEBUG");
    const result = await session.run("echo a\nnosuch");
    expect([result.stdout, result.stderr]).toEqual([
      "D\na\nD\n",
      "bash: line 2: nosuch: command not found\n",
    ]);
    await session.run("trap - DEBUG; set -x");
    expect(await session.run("echo b")).toMatchObject({ stdout: "b\n", stderr: "++ echo b\n" });
    await session.run("set +x; set -v");
    expect(await session.run("echo c")).toMatchObject({ stdout: "c\n", stderr: "echo c\n" });
    await session.session.close();
  });

  test("nothing that a command starts sees a descriptor of ours", async () => {
    const session = await all.create();
    expect((await session.run("ls /proc/self/fd")).stdout).toBe("0\n1\n2\n3\n");
    await session.session.close();
  });

  test("100 MB, every byte counted", async () => {
    const session = await all.create();
    const command = "head -c 100000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero >&2; echo end";
    const result = await session.run(command, { maxOutputBytes: 1000, commandId: "large" });
    expect(result.truncated).toEqual({ stdoutBytes: 100_000_004 - 1000, stderrBytes: 999_000 });
    expect(result.log.nextOffset).toBe(101_000_004);
    expect((await session.run("echo ok")).stdout).toBe("ok\n");
    await session.session.close();
  });

  test("a thousand short ones, none mixed up", async () => {
    const session = await all.create();
    for (let i = 0; i < 1000; i++) {
      const { stdout, stderr } = await session.run(`printf ${i}; printf e${i} >&2`);
      if (stdout !== `${i}` || stderr !== `e${i}`) expect([i, stdout, stderr]).toEqual([i, `${i}`, `e${i}`]);
    }
    await session.session.close();
  });

  test("a background job's late output comes with the next command, and is counted", async () => {
    const session = await all.create();
    const { stdout } = await session.run("(sleep 0.05; echo late) & echo now");
    expect(stdout).toBe("now\n");
    await session.run("wait", { commandId: "waits" });
    await session.run("(echo x; sleep 0.02; echo late; echo >&2 err) & sleep 0.01");
    await Bun.sleep(100);
    const result = await session.run("echo now");
    expect(result).toMatchObject({
      stdout: "late\nnow\n",
      stderr: "err\n",
      background: { stdoutBytes: 5, stderrBytes: 4, droppedBytes: 0 },
    });
    await session.session.close();
  });

  test("a job that holds the output does not hold up the answer", async () => {
    const session = await all.create();
    const started = performance.now();
    expect((await session.run("sleep 20 & echo x")).stdout).toBe("x\n");
    expect(performance.now() - started).toBeLessThan(2000);
    await session.session.close();
  });

  test("stdin as given, empty without", async () => {
    const session = await all.create();
    expect((await session.run("cat", { stdin: "a'b\n" })).stdout).toBe("a'b\n");
    const bytes = Buffer.alloc(3_000_000, 7);
    const { stdout } = await session.run("wc -c", { stdin: { base64: bytes.toString("base64") } });
    expect(stdout.trim()).toBe("3000000");
    expect(await session.run("cat")).toMatchObject({ stdout: "", exitCode: 0 });
    await session.session.close();
  });
});

describe("a forced end", () => {
  test("timeout: the tree is dead, what the command did to the state is undone, earlier jobs live", async () => {
    const session = await all.create();
    const { stdout } = await session.run("sleep 40 & X=before; echo $!");
    const text = "X=half; cd /; (trap '' TERM; setsid sleep 41 & echo $!; wait) & echo $BASHPID; sleep 42";
    const result = await session.run(text, { timeoutMs: 300 });
    expect(result).toMatchObject({
      exitCode: 124,
      timedOut: true,
      stateKept: false,
      kill: { survivors: [] },
    });
    const after = await session.run('echo $X "$PWD"');
    expect(after.stdout).toBe(`before ${join(all.dir, "work")}\n`);
    expect(after.restored).toEqual({ because: "timed_out", from: "savepoint", commandsLost: 0 });
    for (const pid of result.stdout.trim().split("\n")) expect([pid, gone(Number(pid))]).toEqual([pid, true]);
    expect(gone(Number(stdout))).toBe(false);
    await session.session.close();
    expect(gone(Number(stdout))).toBe(true);
  });

  for (const text of [
    "while :; do :; done",
    "kill -STOP $$",
    "sleep 60",
    "read x < <(sleep 60)",
    "exec sleep 60",
    "trap '' TERM; while :; do sleep 0.1; done",
  ]) {
    test(`timeout of ${text}`, async () => {
      const session = await all.create({ commandTimeoutMs: 150 });
      expect(await session.run(text)).toMatchObject({ exitCode: 124, timedOut: true });
      expect((await session.run("echo ok")).stdout).toBe("ok\n");
      await session.session.close();
    });
  }

  test("timeout: what the shell forked and let go, without a program of its own, is dead, too", async () => {
    const session = await all.create();
    const text = "( ( echo $BASHPID; while :; do :; done ) & ); sleep 60";
    const { stdout, kill } = await session.run(text, { timeoutMs: 200 });
    expect([gone(Number(stdout)), kill?.survivors]).toEqual([true, []]);
    expect((await session.run("echo ok")).stdout).toBe("ok\n");
    await session.session.close();
  });

  test("a call's own timeout wins over the session's", async () => {
    const session = await all.create({ commandTimeoutMs: 100 });
    expect(await session.run("sleep 0.3; echo done", { timeoutMs: 5000 })).toMatchObject({
      stdout: "done\n",
    });
    await session.session.close();
  });

  test("cancel of the running one and of a waiting one; the others keep their order", async () => {
    const session = await all.create();
    const first = session.run("sleep 30", { commandId: "c1" });
    const second = session.run("echo second", { commandId: "c2" });
    const third = session.run("echo third; X=3", { commandId: "c3" });
    const fourth = session.run("echo fourth $X", { commandId: "c4" });
    while (session.session.describe().running !== "c1") await Bun.sleep(5);
    expect(session.session.describe()).toMatchObject({ state: "running", waiting: ["c2", "c3", "c4"] });
    await all.engine.running("c2")?.cancel();
    await all.engine.running("c1")?.cancel();
    expect(await first).toMatchObject({ cancelled: true, stateKept: false, ran: true });
    expect(await second).toMatchObject({ cancelled: true, ran: false, stdout: "" });
    expect((await third).stdout).toBe("third\n");
    expect((await fourth).stdout).toBe("fourth 3\n");
    await session.session.close();
  });

  test("a shell that dies after its command has ended is noticed by the next", async () => {
    const session = await all.create();
    await session.run("X=1");
    await session.run("X=2; (sleep 0.03; kill -9 $$) & disown");
    await Bun.sleep(150);
    const result = await session.run("echo $X");
    const restored = { because: "shell_exited", from: "savepoint", commandsLost: 0 };
    expect(result).toMatchObject({ stdout: "2\n", restored });
    await session.session.close();
  });
});

describe("identity", () => {
  test("the same id runs once, and another request with it is refused", async () => {
    const session = await all.create();
    const runs = Array.from({ length: 20 }, () => session.run("N=$((N+1)); echo $N", { commandId: "once" }));
    const answers = await Promise.all(runs);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect((await session.run("echo $N")).stdout).toBe("1\n");
    await expect(session.run("echo other", { commandId: "once" })).rejects.toMatchObject({
      code: "already_exists",
    });
    await session.session.close();
  });

  test("yield: the answer before the end says running, or waiting", async () => {
    const session = await all.create();
    const state = async (id: string, command: string) =>
      SessionCommandState.parse(await session.session.exec({ command, commandId: id, yieldMs: 50 }));
    expect(await state("y1", "sleep 0.4; echo done")).toMatchObject({ status: "running", waiting: false });
    expect(await state("y2", "echo two")).toMatchObject({ status: "running", waiting: true });
    expect((await session.run("sleep 0.4; echo done", { commandId: "y1" })).stdout).toBe("done\n");
    expect((await session.run("echo two", { commandId: "y2" })).stdout).toBe("two\n");
    await session.session.close();
  });

  test("the same session again is the same; asked for differently it is refused", async () => {
    const session = await all.create({ sessionId: "named" });
    await session.run("X=1");
    const [again, meanwhile] = await Promise.all([
      all.create({ sessionId: "named" }),
      all.create({ sessionId: "n2" }),
    ]);
    expect((await again.run("echo $X")).stdout).toBe("1\n");
    await expect(all.create({ sessionId: "named", cwd: "/usr" })).rejects.toMatchObject({
      code: "already_exists",
    });
    await Promise.all(
      [session.session, meanwhile.session].map((each) => all.sessions.remove(each.facts.sessionId)),
    );
    expect(() => all.sessions.get("named")).toThrow("there is no session named");
  });

  test("a directory that is not there is refused, and leaves nothing", async () => {
    await expect(all.create({ sessionId: "nowhere", cwd: "/nonexistent/x" })).rejects.toMatchObject({
      code: "invalid_argument",
      started: "no",
    });
    expect(existsSync(join(all.dir, "state/sessions/nowhere"))).toBe(false);
  });
});

describe("the directory", () => {
  test("deleted: the nearest one above that exists, and said", async () => {
    const deep = join(all.dir, "work/deep/er");
    mkdirSync(deep, { recursive: true });
    const session = await all.create({ cwd: deep });
    rmSync(join(all.dir, "work/deep"), { recursive: true });
    const to = join(all.dir, "work");
    const result = await session.run('echo "$PWD"; pwd -P');
    expect([result.stdout, result.cwdRecovered]).toEqual([`${to}\n${to}\n`, { from: deep, to }]);
    expect((await session.run("pwd")).cwdRecovered).toBeUndefined();
    expect(session.session.describe().cwd).toBe(to);
    await session.session.close();
  });

  test("deleted and made again: the new one; strange names survive", async () => {
    const strange = join(all.dir, "work/a 'b\n$c (deleted)");
    mkdirSync(strange);
    const session = await all.create({ cwd: strange });
    expect((await session.run("pwd")).cwdRecovered).toBeUndefined();
    rmdirSync(strange);
    mkdirSync(strange);
    expect((await session.run("pwd")).stdout).toBe(`${strange}\n`);
    await session.run("exit");
    expect((await session.run("pwd")).stdout).toBe(`${strange}\n`);
    await session.session.close();
  });
});

test("closing runs the EXIT trap, ends all that was started, and leaves no file", async () => {
  const session = await all.create({ sessionId: "closing" });
  const mark = join(all.dir, "work/bye");
  const { stdout } = await session.run(
    `trap 'echo bye > ${mark}' EXIT; setsid sleep 50 & echo $!; sleep 51 & echo $!`,
  );
  const waiting = session.run("sleep 52", { commandId: "closed-in-it" });
  while (session.session.describe().running === undefined) await Bun.sleep(5);
  await all.sessions.remove("closing");
  expect(await waiting).toMatchObject({ cancelled: true });
  for (const pid of stdout.trim().split("\n")) expect(gone(Number(pid))).toBe(true);
  expect(existsSync(join(all.dir, "state/sessions/closing"))).toBe(false);
  await expect(session.run("echo")).rejects.toMatchObject({ code: "wrong_state", started: "no" });
});

describe("a new keeper on the old disk", () => {
  test("brings sessions back from their checkpoints, and says what is missing", async () => {
    const before = testSessions({ env: { INJECTED: "old secret", CHANGED: "c" } });
    const session = await before.create({ sessionId: "s", commandTimeoutMs: 9000, env: { OWN: "own" } });
    await session.run("cd /usr/lib; A=(2 1); f() { echo f; }; export CHANGED=mine");
    await session.run("set -- 'p 1'; trap 'echo t' USR1");
    await before.sessions.stop();
    await expect(session.run("echo no more")).rejects.toMatchObject({ code: "wrong_state" });
    for (const pid of before.processes()) process.kill(pid, "SIGKILL");

    await using after = before.nextKeeper({ INJECTED: "new secret", CHANGED: "c2" });
    const found = after.sessions.get("s");
    expect(found.describe()).toMatchObject({ state: "asleep", cwd: "/usr/lib", commandTimeoutMs: 9000 });
    const result = await testSession(found).run(
      'echo "$PWD $A $1 $INJECTED $CHANGED $OWN"; f; kill -USR1 $$',
    );
    expect(result.stdout).toBe("/usr/lib 2 p 1 new secret mine own\nf\nt\n");
    expect(result.restored).toEqual({ because: "keeper_lost", from: "checkpoint", commandsLost: 0 });
    expect((await testSession(found).run("echo")).restored).toBeUndefined();
    await session.session.close();
  });

  test("a checkpoint is written soon after a command, for the owner only, without injected values", async () => {
    const session = await all.create({ sessionId: "secret" });
    await session.run("PLAIN=visible; declare -r INJECTED");
    const file = join(all.dir, "state/sessions/secret/checkpoint");
    const until = performance.now() + 5000;
    while (!readFileSync(file, "utf8").includes("PLAIN") && performance.now() < until) await Bun.sleep(10);
    const text = readFileSync(file, "utf8");
    expect([text.includes("visible"), text.includes("top secret")]).toEqual([true, false]);
    expect(text).toContain("declare -rx INJECTED\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await session.session.close();
  });

  test("killed with everything: from the checkpoint, with the commands that it lacks", async () => {
    const session = await all.create({ sessionId: "oom" });
    await session.run("X=1");
    await session.session.checkpoint();
    await session.run("X=2");
    const { stdout } = await session.run("echo $$");
    await session.session.settled;
    for (const pid of all.processes().filter((pid) => isShellOf(pid, "oom"))) process.kill(pid, "SIGKILL");
    while (!gone(Number(stdout))) await Bun.sleep(1);
    const next = await session.run("echo $X");
    expect([next.stdout, next.restored]).toEqual([
      "1\n",
      { because: "shell_exited", from: "checkpoint", commandsLost: 2 },
    ]);
    await session.session.close();
  });
});

function isShellOf(pid: number, sessionId: string): boolean {
  return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`HOLDFAST_SESSION=${sessionId}\0`);
}

test("nothing is left behind: no descriptor, no process, no file", async () => {
  const count = () => [
    openDescriptors(),
    all.processes().length,
    readdirSync(join(all.dir, "state/sessions")).length,
  ];
  // What the tests before have closed may take a moment to be: until nothing has changed for a while.
  const settled = async () => {
    let [last, quiet] = [count(), 0];
    for (; quiet < 5; last = count()) {
      await Bun.sleep(20);
      quiet = Bun.deepEquals(count(), last) ? quiet + 1 : 0;
    }
    return last;
  };
  const once = await all.create();
  await once.session.close();
  const before = await settled();
  for (let i = 0; i < 5; i++) {
    const session = await all.create();
    await session.run("exit 1");
    await session.run("sleep 9 & echo");
    await all.sessions.remove(session.session.facts.sessionId);
  }
  expect(await settled()).toEqual(before);
});

test("a trap for a signal that comes between two commands is heard with the next one", async () => {
  await using all = testSessions();
  const session = await all.create();
  await session.run("trap 'echo trapped' USR1");
  await Bun.sleep(50); // what it prints while lines of ours run is thrown away
  process.kill(session.session.shellProcesses[0]?.pid ?? 0, "SIGUSR1");
  await Bun.sleep(50);
  const { stdout, background } = await session.run("echo hi");
  expect([stdout, background]).toEqual(["trapped\nhi\n", undefined]);
});

test("what a subshell does to the descriptor that commands come from is told: what is kept was run once", async () => {
  await using all = testSessions();
  const session = await all.create();
  // Bash keeps what it closes for a text above 9: all of it is read empty, again and again, by a job.
  const eat = "for fd in {10..30}; do read -rt 0.001 -u $fd -d '' -N 9999 x; done";
  await session.run(`N=0; (for i in {1..20}; do ${eat}; done) 2>/dev/null & echo $!`);
  let [kept, lost] = [0, 0];
  // It may spoil the shell, which is told, and undone: then there is another, with the state after an earlier command.
  const once = async (text: string) => {
    const told = await session.run(text).catch(() => undefined);
    lost += told?.restored?.commandsLost ?? 0;
    return told;
  };
  for (let i = 0; i < 5; i++) if ((await once("N=$((N+1))"))?.stateKept) kept++;
  let last = await once("wait; echo $N");
  while (last?.stateKept !== true) last = await once("echo $N");
  expect(Number(last.stdout)).toBeLessThanOrEqual(kept);
  expect(Number(last.stdout)).toBeGreaterThanOrEqual(kept - lost);
});
