import { expect, setDefaultTimeout, test } from "bun:test";
import { Bench, TEST_MS } from "./test-bench.ts";
import { realTimers } from "./timers.ts";

setDefaultTimeout(TEST_MS);

test("a program's output, input, size and exit", async () => {
  await using bench = new Bench();
  const made = await bench.create({ id: "main", cols: 100, rows: 30 });
  expect(made).toMatchObject({ terminalId: "main", created: true, state: "running", cols: 100, rows: 30 });
  const viewer = await bench.connect("main");
  expect(viewer.frames[0]).toEqual({
    type: "ready",
    terminalId: "main",
    ptyId: made.ptyId,
    offset: 0,
    cols: 100,
    rows: 30,
    readonly: false,
  });
  viewer.type('stty size; tty; echo "$TERM"\r');
  await viewer.sees(/30 100\r\n\/dev\/pts\/\d+\r\nxterm-256color\r\n/);
  viewer.type("exit 7\r");
  await viewer.ended();
  expect(viewer.closed).toEqual({ code: 4000, reason: "program" });
  expect(viewer.frame("exit")?.exit).toMatchObject({ exitCode: 7, signal: null, cause: "program" });
  expect(await bench.look("main")).toMatchObject({
    state: "exited",
    nextOffset: viewer.offset,
    exit: { exitCode: 7, signal: null },
  });
});

test("a hundred creates of one id at once make one PTY", async () => {
  await using bench = new Bench();
  const all = await Promise.all(Array.from({ length: 100 }, () => bench.create({ id: "one" })));
  expect(new Set(all.map(({ pid }) => pid)).size).toBe(1);
  expect(all.filter(({ created }) => created)).toHaveLength(1);
  expect(bench.processes()).toHaveLength(1);
});

test("an ended program is never handed out as alive: the id gets a new PTY, and the answer says so", async () => {
  await using bench = new Bench();
  const first = await bench.create({ id: "t", command: "exit 3" });
  await bench.terminals.get("t").ended;
  const late = await bench.connect("t");
  await late.ended();
  expect(late.frame("exit")?.exit.exitCode).toBe(3);
  const second = await bench.create({ id: "t" });
  expect(second).toMatchObject({
    created: true,
    state: "running",
    replaced: { ptyId: first.ptyId, exit: { exitCode: 3 } },
  });
  expect(second.ptyId).not.toBe(first.ptyId);
  const lost = await bench.connect("t", `since=0&ptyId=${first.ptyId}`);
  await lost.ended();
  expect(lost.frame("error")?.error.code).toBe("state_lost");
  expect(lost.closed?.code).toBe(4001);
});

test("a running terminal is joined as it is; another program under its id is refused", async () => {
  await using bench = new Bench();
  const { ptyId } = await bench.create({ id: "t", command: ["sleep", "1000"], cwd: "/" });
  const joined = (await bench.call("POST", "", { id: "t", cols: 99, graceSeconds: 60 })).body;
  expect(joined).toMatchObject({ ptyId, created: false, cols: 99, rows: 24, graceSeconds: 60 });
  const refused = await bench.call("POST", "", { id: "t", command: "top", cwd: "/", env: { A: "1" } });
  expect(refused).toMatchObject({
    status: 409,
    body: { error: { code: "already_exists", started: "no", details: { different: ["command", "env"] } } },
  });
});

test("without a command it is the user's login shell, with the layers of the environment", async () => {
  await using bench = new Bench();
  const env = { SHELL: "/bin/sh", PS1: null, EXTRA: "a b", TERM: "vt100" };
  const { body } = await bench.call("POST", "", { id: "t", env });
  expect(body).toMatchObject({ command: ["/bin/sh", "-l"] });
  const viewer = await bench.connect("t");
  viewer.type('echo "<$0> <$EXTRA> <$TERM> <$PWD>"\r');
  await viewer.sees(new RegExp(`</bin/sh> <a b> <vt100> <${bench.home}>`));
});

const badRequests: [name: string, body: unknown, message: RegExp][] = [
  ["an unknown folder", { cwd: "/no/such" }, /working directory \/no\/such/],
  ["an unknown program", { command: ["no-such-program"] }, /no-such-program/],
  ["a size of nothing", { cols: 0 }, /cols/],
  ["a size beyond all screens", { rows: 100_000 }, /rows/],
  ["an id that is a path", { id: "../x" }, /id/],
  ["an environment name with a =", { env: { "A=B": "1" } }, /env\.A=B/],
  ["a NUL in an argument", { command: ["a\0b"] }, /NUL/],
  ["an option nobody knows", { colour: "red" }, /colour/],
];

test.each(badRequests)("%s is refused, and nothing is started", async (_, body, message) => {
  await using bench = new Bench();
  const answer = await bench.call("POST", "", body);
  expect(answer).toMatchObject({ status: 400, body: { error: { code: "invalid_argument" } } });
  expect((answer.body as { error: { message: string } }).error.message).toMatch(message);
  expect(bench.terminals.list()).toEqual([]);
});

test("destroy ends the whole tree, also what left its session and ignores the hang-up", async () => {
  await using bench = new Bench();
  await bench.create({
    id: "t",
    command:
      "trap '' HUP TERM; setsid sleep 1000 & (setsid sh -c 'trap \"\" HUP TERM; echo deep; sleep 1001' &) ; sleep 1002",
  });
  const viewer = await bench.connect("t");
  await viewer.sees(/deep/);
  // What is just being executed cannot be told yet.
  while (bench.commandLines().filter((line) => /^sleep 100\d$/.test(line)).length < 3) await Bun.sleep(5);
  const [first, second] = await Promise.all([bench.call("DELETE", "/t"), bench.call("DELETE", "/t")]);
  expect(first).toEqual(second);
  expect(first).toMatchObject({
    status: 200,
    body: { state: "exited", exit: { cause: "destroyed" }, kill: { survivors: [] } },
  });
  expect(bench.processes()).toEqual([]);
  await viewer.ended();
  expect(viewer.closed?.code).toBe(4003);
  expect((await bench.call("GET", "/t")).status).toBe(404);
  expect((await bench.call("DELETE", "/t")).status).toBe(404);
});

/** Counts what waits for time to pass. */
function countingTimers() {
  const timers = {
    waits: 0,
    now: realTimers.now,
    elapsed: realTimers.elapsed,
    after(ms: number, action: () => void) {
      timers.waits++;
      return realTimers.after(ms, action);
    },
  };
  return timers;
}

test("an exit is told once all output is read, also when something is left on the terminal", async () => {
  const timers = countingTimers();
  await using bench = new Bench(timers);
  await bench.create({ id: "t", command: "trap '' HUP; sleep 1000 & seq 1 5000; exit 3" });
  expect(await bench.terminals.get("t").ended).toMatchObject({ exitCode: 3, cause: "program" });
  expect(timers.waits).toBeLessThan(100);
  expect(bench.commandLines()).toEqual(["sleep 1000"]);
  const late = await bench.connect("t");
  await late.ended();
  expect(late.text).toEndWith("\r\n4999\r\n5000\r\n");
});

test("a program that is ended before it has opened its terminal is not waited for", async () => {
  const timers = countingTimers();
  await using bench = new Bench(timers);
  for (let i = 0; i < 20; i++) {
    await bench.create({ id: "t", command: ["sleep", "1000"] });
    expect((await bench.terminals.destroy("t")).exit).toMatchObject({ signal: "SIGHUP" });
  }
  expect(timers.waits).toBeLessThan(200);
});

test("records of ended programs are bounded", async () => {
  await using bench = new Bench();
  for (let i = 0; i < 30; i++) {
    await bench.create({ id: `t${i}`, command: ["true"] });
    await bench.terminals.get(`t${i}`).ended;
  }
  const kept = bench.terminals.list().map(({ terminalId }) => terminalId);
  expect(kept).toEqual(Array.from({ length: 20 }, (_, i) => `t${i + 10}`));
});
