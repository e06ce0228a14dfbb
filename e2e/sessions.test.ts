import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox, type Session } from "holdfast";
import { holdfastBin, killKeeper, run, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "sessions", network: "none" }, server.at);
});
afterAll(() => server.dispose());

test("what a command does to its shell is there for the next, and only in this session", async () => {
  const [one, two] = [await sandbox.createSession({ cwd: "/tmp" }), await sandbox.createSession()];
  await one.exec(
    "export A=1; B=(x 'y z'); f() { echo f:$1; }; alias g='echo aliased'; shopt -s expand_aliases; cd /usr; set -u",
  );
  expect((await one.exec('echo $A "${B[1]}" $PWD; f 2; g')).stdout).toBe("1 y z /usr\nf:2\naliased\n");
  expect((await two.exec('echo "[${A-}]" $PWD')).stdout).toBe("[] /workspace\n");
  expect((await sandbox.exec('echo "[${A-}]"')).stdout).toBe("[]\n");
});

test.each([
  ["an unbalanced single quote", "echo 'oops", 2],
  ["an unbalanced double quote", 'echo "oops', 2],
  ["an open heredoc", "cat <<END\nfirst", 0],
  ["an open if", "if true; then", 2],
  ["a lone brace", "}", 2],
  ["a trailing backslash", "true \\", 0],
  ["return, which a shell of its own refuses", "return 7", 2],
  ["exit 3", "exit 3", 3],
  ["exec bash", "exec bash -c 'exit 4'", 4],
  ["exec >file", "exec >/tmp/taken; echo hidden", 0],
  ["set -e; false", "set -e; false", 1],
  [
    "a function named like ours",
    "builtin() { echo stolen; }; printf() { echo stolen; }; read() { echo stolen; }",
    0,
  ],
])("hostile input: %s", async (_, text, exitCode) => {
  const session = await sandbox.createSession();
  await session.exec("KEPT=before; cd /tmp");
  expect((await session.exec(text)).exitCode).toBe(exitCode);
  expect(await session.exec("unset -f builtin printf read; echo ok $KEPT $PWD")).toMatchObject({
    stdout: "ok before /tmp\n",
    stderr: "",
    exitCode: 0,
  });
  await session.delete();
});

test("exit is said, and so is what came back", async () => {
  const session = await sandbox.createSession();
  await session.exec("X=1");
  expect(await session.exec("X=2; exit 3")).toMatchObject({
    exitCode: 3,
    shellExited: true,
    stateKept: false,
  });
  expect(await session.exec("echo $X")).toMatchObject({
    stdout: "1\n",
    restored: { because: "shell_exited", from: "savepoint" },
  });
});

test("a timeout ends the command's tree, and the state before it is there", async () => {
  const session = await sandbox.createSession({ commandTimeoutMs: 400 });
  await session.exec("X=1");
  expect(await session.exec("X=2; sleep 100")).toMatchObject({ exitCode: 124, timedOut: true });
  expect((await session.exec("echo $X; pgrep -f 'sleep 100'")).stdout).toBe("1\n");
  expect(await session.exec("sleep 0.6; echo slept", { timeoutMs: 5_000 })).toMatchObject({
    stdout: "slept\n",
  });
});

test("what hid from the kill of a session's command is listed, not hidden", async () => {
  const session = await sandbox.createSession();
  const { kill } = await session.exec("(env -i setsid sleep 4321 &); sleep 100", { timeoutMs: 400 });
  expect(kill).toMatchObject({ survivors: [], unattributed: [{ command: "sleep 4321" }] });
  expect((await session.exec("pkill -f 'sleep 4321'")).exitCode).toBe(0);
  const clean = await session.exec("sleep 100", { timeoutMs: 200 });
  expect(clean.kill).toMatchObject({ survivors: [], unattributed: [] });
});

test("commands run in order; a running and a waiting one can be cancelled", async () => {
  const session = await sandbox.createSession();
  const first = session.exec("sleep 100", { commandId: "first" });
  const second = session.exec("echo never > /workspace/never", { commandId: "second" });
  const third = session.exec("echo third");
  await until(async () => (await session.refresh()).info.waiting.length === 2);
  expect(session.info).toMatchObject({ state: "running", running: "first" });
  await sandbox.cancelCommand("second");
  await sandbox.cancelCommand("first");
  expect(await first).toMatchObject({ cancelled: true, ran: true });
  expect(await second).toMatchObject({ cancelled: true, ran: false });
  expect(await third).toMatchObject({ stdout: "third\n" });
  expect((await sandbox.exec("cat /workspace/never")).exitCode).toBe(1);
});

test("a process starts from the session's state and writes nothing back", async () => {
  const session = await sandbox.createSession();
  await session.exec("hello() { echo hello $NAME from $PWD; }; NAME=you; cd /usr");
  const process = await session.startProcess("hello; NAME=other; cd /");
  expect(await text(process.logs({ follow: true }))).toBe("hello you from /usr\n");
  expect((await session.exec("echo $NAME $PWD")).stdout).toBe("you /usr\n");
  const listed = await sandbox.listProcesses({ sessionId: session.sessionId });
  expect(listed.map(({ processId }) => processId)).toEqual([process.processId]);
});

test("a deleted directory is recovered to the nearest that exists, and said", async () => {
  const session = await sandbox.createSession();
  await session.exec("mkdir -p /tmp/a/b && cd /tmp/a/b");
  await sandbox.exec("rm -rf /tmp/a");
  expect(await session.exec("pwd")).toMatchObject({
    stdout: "/tmp\n",
    cwdRecovered: { from: "/tmp/a/b", to: "/tmp" },
  });
});

test("100 MB of output: exact bytes, bounded answer, exact count of the rest", async () => {
  const session = await sandbox.createSession();
  const big = await session.exec("head -c 100000000 /dev/zero", { maxOutputBytes: 1_000 });
  expect([big.stdout.length, big.truncated.stdoutBytes]).toEqual([1_000, 99_999_000]);
});

const restarts: [string, (session: Session) => Promise<unknown>, string | undefined][] = [
  ["kill -9 of the server", () => server.restart("SIGKILL"), undefined],
  ["kill -9 of the keeper", () => killKeeper(sandbox), "keeper_lost"],
  ["a stop", () => sandbox.stop(), "keeper_lost"],
];
test.each(restarts)(
  "the session survives %s, and says so",
  async (_, disturb, because) => {
    const session = await sandbox.createSession();
    await session.exec("export A=1; f() { echo f; }; cd /usr; B=(1 2)");
    await until(async () => (await session.exec("true")).stateKept);
    await Bun.sleep(200);
    await disturb(session);
    const after = await session.exec('f; echo $A "${B[@]}" $PWD');
    expect(after.stdout).toBe("f\n1 1 2 /usr\n");
    expect(after.restored?.because as string | undefined).toBe(because);
  },
  120_000,
);

test("work that ran when the keeper died is lost with the cause, and is not run again", async () => {
  const session = await sandbox.createSession();
  const process = await sandbox.startProcess("echo began; sleep 1000");
  await until(async () => (await process.info()).log.nextOffset > 0);
  const cut = session.exec("sleep 1000", { commandId: "cut" }).catch((error) => error);
  const alone = sandbox
    .exec("echo ran >> /workspace/runs; sleep 1000", { commandId: "alone" })
    .catch((error) => error);
  await until(async () => (await sandbox.exec("cat /workspace/runs")).exitCode === 0);
  await killKeeper(sandbox);
  for (const error of [await cut, await alone])
    expect(error).toMatchObject({ code: "keeper_lost", started: "unknown" });
  await sandbox.exec("true");
  expect(await sandbox.getCommand("alone")).toMatchObject({
    status: "lost",
    reason: expect.stringContaining("keeper_lost"),
  });
  expect(await process.status()).toMatchObject({
    state: "lost",
    reason: expect.stringContaining("keeper_lost"),
  });
  expect(await text(process.logs())).toBe("began\n");
  expect(
    sandbox.exec("echo ran >> /workspace/runs; sleep 1000", { commandId: "alone" }),
  ).rejects.toMatchObject({ code: "keeper_lost" });
  expect((await sandbox.exec("wc -l < /workspace/runs")).stdout).toBe("1\n");
});

test("the CLI runs commands in a session", async () => {
  const env = { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  const exec = (...words: string[]) =>
    run([holdfastBin, "exec", "--session", "cli", "sessions", ...words], { env });
  expect(await exec("cd /usr; export CI=1")).toMatchObject({ exitCode: 0, stderr: "" });
  const ended = await exec("echo $PWD $CI; cd /; exit 9");
  expect(ended).toMatchObject({
    exitCode: 9,
    stdout: "/usr 1\n",
    stderr: expect.stringContaining("as it was before"),
  });
  expect(await exec("pwd")).toMatchObject({ stdout: "/usr\n", stderr: "" });
  expect(await exec("--", "printf", "%s|", "a b", "$CI")).toMatchObject({ stdout: "a b|$CI|" });
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 10_000; !(await condition()); await Bun.sleep(5)) {
    if (Date.now() > deadline) throw new Error("it did not come to be so");
  }
}

async function text(events: AsyncIterable<{ bytes?: Uint8Array } | object>): Promise<string> {
  let whole = "";
  for await (const event of events)
    if ("bytes" in event && event.bytes) whole += new TextDecoder().decode(event.bytes);
  return whole;
}
