import { expect, setDefaultTimeout, test } from "bun:test";
import { testWith } from "../test-with.ts";
import { Bench, TEST_MS } from "./test-bench.ts";

setDefaultTimeout(TEST_MS);

test("a resize is seen by stty and by a window-change handler, and told to all viewers", async () => {
  await using bench = new Bench();
  // Not in the trap: bash forgets a signal that comes while the trap of the one before still runs.
  const look = "if [ $changed ]; then changed=; echo winch $(stty size); fi";
  const command = `trap changed=1 WINCH; echo set; while :; do sleep 0.02; ${look}; done`;
  await bench.create({ id: "t", command });
  const [one, two] = [await bench.connect("t"), await bench.connect("t", "readonly=true")];
  await one.sees(/set\r\n/);
  one.resize(132, 43);
  await one.sees(/winch 43 132/);
  for (const viewer of [one, two]) {
    await viewer.until((v) => v.frame("resize") !== undefined);
    expect(viewer.frame("resize")).toEqual({ type: "resize", cols: 132, rows: 43 });
  }
  const answer = await bench.call("POST", "/t/resize", { cols: 70, rows: 20 });
  expect(answer).toMatchObject({ status: 200, body: { cols: 70, rows: 20, viewers: 2, writers: 1 } });
  await two.sees(/winch 20 70/);
  expect(two.frame("resize")).toEqual({ type: "resize", cols: 70, rows: 20 });
});

test("a read-only viewer can neither type nor resize, and stays attached", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t" });
  const [writer, reader] = [await bench.connect("t"), await bench.connect("t", "readonly=true")];
  reader.type("echo from-reader\r");
  await reader.until(({ frames }) => frames.length === 2);
  reader.resize(10, 10);
  await reader.until(({ frames }) => frames.length === 3);
  expect(reader.frames.slice(1)).toMatchObject([
    { type: "error", error: { code: "forbidden" } },
    { type: "error", error: { code: "forbidden" } },
  ]);
  writer.type("stty size\r");
  await reader.sees(/24 80/);
  expect(reader.text).not.toContain("from-reader");
});

test("who comes back with its offset gets exactly what it missed", async () => {
  await using bench = new Bench();
  const { ptyId } = await bench.create({ id: "t", command: "seq 1 20000; read x; seq 20001 40000; read x" });
  const whole = await bench.connect("t");
  const first = await bench.connect("t");
  await first.sees(/1500\r\n/);
  const { text, offset } = first;
  await first.close();
  await whole.sees(/\r\n20000\r\n/);
  whole.type("\r");
  await whole.sees(/\r\n40000\r\n/);
  const again = await bench.connect("t", `since=${offset}&ptyId=${ptyId}`);
  await again.sees(/\r\n40000\r\n/);
  expect(text + again.text).toBe(whole.text);
  expect(again.frame("truncated")).toBeUndefined();
});

test("what the replay buffer no longer has is said, with the offsets", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: "printf '\\33[?1049h\\33[?25l'; seq 1 400000; echo end; read x" });
  const watcher = await bench.connect("t", "readonly=true");
  await watcher.sees(/end\r\n/);
  const { nextOffset, firstOffset } = await bench.look("t");
  expect(nextOffset - firstOffset).toBe(1024 * 1024);
  const late = await bench.connect("t", "since=5");
  await late.sees(/end\r\n/);
  expect(late.frames.slice(0, 2)).toMatchObject([
    { type: "ready", offset: 5 },
    { type: "truncated", from: 5, to: firstOffset, restore: "\x1b[?1049h\x1b[?25l" },
  ]);
  expect(late.bytes.length).toBe(1024 * 1024);
  expect(late.offset).toBe(nextOffset);
});

test("requests that make no sense are told in a frame, because a page sees nothing else", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t" });
  const unknown = await bench.connect("no-such");
  await unknown.ended();
  expect([unknown.frame("error")?.error.code, unknown.closed?.code]).toEqual(["not_found", 4001]);
  const beyond = await bench.connect("t", "since=999999");
  await beyond.ended();
  expect(beyond.frame("error")?.error.code).toBe("state_lost");
  for (const frame of ["hello", '{"type":"resize","cols":0,"rows":5}', '{"type":"reboot"}']) {
    const viewer = await bench.connect("t");
    viewer.socket.send(frame);
    await viewer.ended();
    expect(viewer.frame("error")?.error.code).toBe("invalid_argument");
  }
  const plain = await bench.call("GET", "/t/connect");
  expect(plain).toMatchObject({ status: 400, body: { error: { code: "invalid_argument" } } });
});

test("Ctrl-C, Ctrl-Z, Ctrl-D and job control work", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t" });
  const viewer = await bench.connect("t");
  // A shell says that it continues a job before it hands the terminal over: only the job itself knows when it has it.
  // It starts nothing: a shell that waits in vfork for a child which Ctrl-Z has just stopped cannot stop itself.
  viewer.type("sh -c 'trap \"echo back\" CONT; echo runs; while :; do read x; done'\r");
  await viewer.sees(/\rruns\r\n/);
  viewer.type("\x1a");
  await viewer.sees(/Stopped/);
  viewer.type("fg\r");
  await viewer.sees(/back\r\n/);
  viewer.type("\x03");
  // What is typed before the shell has its terminal back is thrown away together with the interrupt.
  await viewer.sees(/\^C[\s\S]*\$ $/);
  viewer.type("echo code $?\r");
  await viewer.sees(/code 130/);
  viewer.type("sh -c 'echo cats; exec cat'\r");
  await viewer.sees(/\rcats\r\n/);
  viewer.type("line\r");
  await viewer.sees(/line\r\nline\r\n/);
  viewer.type("\x04");
  await viewer.sees(/line\r\nline\r\n.*\$ $/);
  viewer.type("\x04");
  await viewer.ended();
  expect(viewer.frame("exit")?.exit).toMatchObject({ exitCode: 0, signal: null });
});

test("a death by signal is told as such", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: "kill -SEGV $$" });
  const viewer = await bench.connect("t");
  await viewer.ended();
  expect(viewer.frame("exit")?.exit).toMatchObject({ exitCode: 139, signal: "SIGSEGV" });
});

testWith({ program: "python3", from: "python3-minimal" })("the python prompt", async () => {
  await using bench = new Bench();
  await bench.create({ id: "py", command: ["python3", "-q"] });
  const viewer = await bench.connect("py");
  await viewer.sees(/>>> $/);
  viewer.type("print(6 * 7, 'ü' * 3)\r");
  await viewer.sees(/42 üüü\r\n>>> $/);
  viewer.type("raise SystemExit(5)\r");
  await viewer.ended();
  expect(viewer.frame("exit")?.exit.exitCode).toBe(5);
});
