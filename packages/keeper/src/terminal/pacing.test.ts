import { expect, setDefaultTimeout, test } from "bun:test";
import type { Terminal } from "@holdfast/protocol";
import { lookAt } from "../engine/proc-table.ts";
import { startTestKeeper } from "../test-keeper.ts";
import { FakeTimers, fakeSeconds } from "./fake-timers.ts";
import { Bench, HEADERS, TEST_MS } from "./test-bench.ts";

setDefaultTimeout(TEST_MS);

const KIB = 1024;

test("a viewer with a window never has more than that on its way, and loses nothing", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: "read x; yes 0123456789abcdef | head -c 3000000; read x" });
  const viewer = await bench.connect("t", `window=${64 * KIB}`);
  viewer.type("\r");
  let acked = 0;
  while (acked < 3_000_000) {
    await viewer.until(({ offset }) => offset > acked);
    expect(viewer.offset - acked).toBeLessThanOrEqual(64 * KIB);
    acked = viewer.offset;
    viewer.socket.send(JSON.stringify({ type: "ack", offset: acked }));
  }
  expect(viewer.frames.map(({ type }) => type)).toEqual(["ready"]);
  const expected = `\r\n${"0123456789abcdef\r\n".repeat(200_000)}`;
  expect(viewer.text === expected.slice(0, viewer.offset)).toBe(true);
});

test("a viewer that takes nothing makes the program wait, then is dropped, and the program goes on", async () => {
  const timers = new FakeTimers();
  await using bench = new Bench(fakeSeconds(timers));
  await bench.create({ id: "t", command: ["yes"] });
  const stuck = await bench.connect("t", `window=${64 * KIB}`);
  const heldAt = await settled(bench, "t");
  expect(heldAt).toBeLessThan(1024 * KIB);
  await stuck.until(({ offset }) => offset === 64 * KIB);
  timers.advance(15_000);
  await stuck.ended();
  expect(stuck.closed).toEqual({ code: 4002, reason: "no answer" });
  const after = await bench.connect("t", "readonly=true");
  await after.until(({ offset }) => offset > heldAt + 1024 * KIB);
  expect(await bench.look("t")).toMatchObject({ state: "running", viewers: 1, writers: 0 });
});

test("a viewer whose socket is never read costs a bounded buffer, and is dropped", async () => {
  const timers = new FakeTimers();
  await using bench = new Bench(fakeSeconds(timers));
  await bench.create({ id: "t", command: ["yes"] });
  const deaf = await deafViewer(bench, "t");
  const heldAt = await settled(bench, "t");
  // The ring's half, the socket's share, and what the kernel itself buffers for a connection.
  expect(heldAt).toBeLessThan(8 * 1024 * KIB);
  expect((await bench.look("t")).viewers).toBe(1);
  timers.advance(15_000);
  expect((await bench.look("t")).viewers).toBe(0);
  const after = await bench.connect("t", "readonly=true");
  await after.until(({ offset }) => offset > heldAt + 1024 * KIB);
  deaf.end();
});

test("a read-only viewer that takes nothing slows nobody: it is overtaken, and told", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: "read x; yes | head -c 2000000; echo done; read x" });
  const slow = await bench.connect("t", `readonly=true&window=${4 * KIB}`);
  const fast = await bench.connect("t", "readonly=true");
  const starter = await bench.connect("t");
  starter.type("\r");
  await starter.close();
  await fast.sees(/done/);
  await slow.until(({ offset }) => offset === 4 * KIB);
  slow.socket.send(JSON.stringify({ type: "ack", offset: slow.offset }));
  await slow.until((viewer) => viewer.frame("truncated") !== undefined);
  const { firstOffset } = await bench.look("t");
  expect(slow.frame("truncated")).toMatchObject({ from: 4 * KIB, to: firstOffset });
});

test("while fifty terminals flood, commands are run and calls answered, and each flood goes on", async () => {
  await using keeper = await startTestKeeper();
  const offsets = async () =>
    (await keeper.call("/v1/terminals")).body.terminals.map(({ nextOffset }: Terminal) => nextOffset);
  for (let i = 0; i < 50; i++) await keeper.call("/v1/terminals", { command: ["yes"] });
  const before: number[] = await within(ANSWER_MS, offsets());
  for (let i = 0; i < 20; i++) {
    const answer = await within(ANSWER_MS, keeper.call("/v1/exec", { command: `echo ${i}; exit ${i}` }));
    expect(answer.body).toMatchObject({ stdout: `${i}\n`, exitCode: i });
  }
  const floodsOn = async () =>
    (await offsets()).every((offset: number, i: number) => offset > (before[i] ?? 0));
  while (!(await within(ANSWER_MS, floodsOn()))) await Bun.sleep(20);
});

test("typed input that the program does not read is bounded, and the typist is told to wait", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: "stty raw -echo; echo ready; read -n 1 x </dev/null; sleep 1000" });
  const viewer = await bench.connect("t");
  await viewer.sees(/ready/);
  viewer.type("x".repeat(200 * KIB));
  await viewer.until(({ frames }) => frames.length > 1);
  expect(viewer.frame("input")).toEqual({ type: "input", state: "full" });
  for (let i = 0; i < 8; i++) viewer.type("x".repeat(512 * KIB));
  await viewer.ended();
  expect(viewer.frame("error")?.error.code).toBe("limit_reached");
});

test("a large paste arrives whole, with the typist waiting in between", async () => {
  await using bench = new Bench();
  const command = "stty raw -echo; echo ready; head -c 1000000 | sha256sum";
  await bench.create({ id: "t", command });
  const viewer = await bench.connect("t");
  await viewer.sees(/ready/);
  const text = Array.from({ length: 100_000 }, (_, i) => String(i).padStart(9, "0"))
    .join("\n")
    .padEnd(1_000_000, "z");
  for (let at = 0; at < text.length; at += 50_000) {
    await viewer.until((v) => v.frame("input")?.state !== "full");
    viewer.type(text.slice(at, at + 50_000));
  }
  const expected = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  await viewer.sees(new RegExp(expected));
});

test("Ctrl-S stops the output and Ctrl-Q goes on, whatever the pacing does", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: ["yes"] });
  const viewer = await bench.connect("t");
  await viewer.until(({ offset }) => offset > 0);
  viewer.type("\x13");
  const stoppedAt = await settled(bench, "t");
  await viewer.until(({ offset }) => offset === stoppedAt);
  viewer.type("\x11");
  await viewer.until(({ offset }) => offset > stoppedAt + 1024 * KIB);
  viewer.type("\x03");
  await viewer.ended();
  expect(viewer.frame("exit")?.exit).toMatchObject({ signal: "SIGINT" });
});

test("a detached terminal lives for its grace, counted from the last who could write", async () => {
  const timers = new FakeTimers();
  await using bench = new Bench(fakeSeconds(timers));
  await bench.create({ id: "t", command: ["sleep", "1000"], graceSeconds: 60 });
  const terminal = bench.terminals.get("t");
  timers.advance(59_000);
  const writer = await bench.connect("t");
  timers.advance(3_000);
  await writer.close();
  while (terminal.facts().writers > 0) await Bun.sleep(1);
  await bench.connect("t", "readonly=true");
  timers.advance(59_000);
  expect(terminal.facts().state).toBe("running");
  timers.advance(1_000);
  expect(await terminal.ended).toMatchObject({ cause: "grace_over", signal: "SIGHUP" });
});

/** The output's end when it has come to rest: several looks in a row that see the same, and a program that waits. */
async function settled(bench: Bench, id: string): Promise<number> {
  const terminal = bench.terminals.get(id);
  let last = -1;
  for (let same = 0; same < 10; await Bun.sleep(20)) {
    const { nextOffset } = terminal.facts();
    const waits = lookAt(terminal.leader.pid)?.state === "S";
    same = waits && nextOffset > 0 && nextOffset === last ? same + 1 : 0;
    last = nextOffset;
  }
  return last;
}

// No measure of speed, that is the bench's: a keeper that the floods keep busy does not answer at all.
const ANSWER_MS = 5_000;

async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** Connects, and never reads a byte again. */
async function deafViewer(bench: Bench, id: string): Promise<Bun.Socket> {
  const open = Promise.withResolvers<void>();
  const headers = Object.entries(HEADERS)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\r\n");
  const { host, pathname, search } = new URL(bench.socketUrl(id));
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: bench.port,
    socket: {
      data(self) {
        self.pause();
        open.resolve();
      },
    },
  });
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  await open.promise;
  return socket;
}
