import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { FENCE_HEADER, FrameDecoder, LOG_FRAMES_TYPE, type LogEvent } from "@holdfast/protocol";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startTestKeeper();
});
afterAll(async () => {
  await keeper[Symbol.asyncDispose]();
  expect(keeper.processes()).toEqual([]);
});

const start = async (request: Record<string, unknown>) => (await keeper.call("/v1/processes", request)).body;
const wait = async (id: string, timeoutMs = 10_000) =>
  (await keeper.call(`/v1/processes/${id}/wait?timeoutMs=${timeoutMs}`)).body;
const fixture = (name: string) => join(import.meta.dir, "../../fixtures", name);

async function logs(id: string, query = ""): Promise<LogEvent[]> {
  const response = await keeper.request(`/v1/processes/${id}/logs?${query}`, {
    headers: { Accept: LOG_FRAMES_TYPE },
  });
  return [...new FrameDecoder().push(await response.bytes())];
}

const text = (events: LogEvent[]) =>
  events.map((event) => ("bytes" in event ? Buffer.from(event.bytes).toString() : event.type)).join("");

test("a process from its start to its end", async () => {
  const started = await keeper.call("/v1/processes", {
    command: "echo a; read x; echo b >&2; exit 4",
    processId: "p",
  });
  const process = {
    processId: "p",
    pid: expect.any(Number),
    command: "echo a; read x; echo b >&2; exit 4",
    cwd: keeper.dir,
    shell: "bash",
    status: { state: "running" },
    startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    log: { firstOffset: 0, nextOffset: expect.any(Number) },
  };
  expect(started).toEqual({ status: 201, body: process });
  expect((await keeper.call("/v1/processes")).body).toEqual({ processes: [process] });
  await keeper.request("/v1/processes/p/stdin", { method: "POST", body: "x\n" });
  const ending = { exitCode: 4, signal: null, timedOut: false, cancelled: false, oomKilled: false };
  const ended = {
    ...process,
    status: { state: "exited", ...ending },
    endedAt: expect.any(String),
    log: { firstOffset: 0, nextOffset: 4 },
  };
  expect(await wait("p")).toEqual(ended);
  expect((await keeper.call("/v1/processes", { command: process.command, processId: "p" })).body).toEqual(
    ended,
  );
  expect(await logs("p")).toEqual([
    { type: "stdout", offset: 0, bytes: new Uint8Array(Buffer.from("a\n")) },
    { type: "stderr", offset: 2, bytes: new Uint8Array(Buffer.from("b\n")) },
    { type: "exit", offset: 4, ...ending },
  ]);
});

test("commands are not processes, and processes are not commands", async () => {
  await keeper.call("/v1/exec", { command: "true", commandId: "a-command" });
  await start({ command: "true", processId: "a-process" });
  expect((await keeper.call("/v1/processes/a-command")).status).toBe(404);
  expect((await keeper.call("/v1/commands/a-process")).status).toBe(404);
  expect((await keeper.call("/v1/commands/a-process/logs")).status).toBe(404);
  const { processes } = (await keeper.call("/v1/processes")).body;
  expect(processes.map(({ processId }: { processId: string }) => processId)).not.toContain("a-command");
});

describe("logs", () => {
  test("a gigabyte arrives, every byte, and memory stays flat", async () => {
    const rss = async () => {
      const status = await Bun.file(`/proc/${keeper.child.pid}/status`).text();
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    const before = await rss();
    await start({ command: "head -c 1000000000 /dev/zero", processId: "giga" });
    const response = await keeper.request("/v1/processes/giga/logs?follow=true", {
      headers: { Accept: LOG_FRAMES_TYPE },
    });
    const decoder = new FrameDecoder();
    let [bytes, dropped, exits] = [0, 0, 0];
    for await (const chunk of response.body ?? []) {
      for (const event of decoder.push(chunk)) {
        if (event.type === "stdout") bytes += event.bytes.length;
        if (event.type === "truncated") dropped += event.to - event.from;
        if (event.type === "exit") exits += 1;
      }
    }
    expect([bytes + dropped, exits]).toEqual([1_000_000_000, 1]);
    expect((await rss()) - before).toBeLessThan(60);
  });

  test("a reader that stalls is waited for once the log is full, and then gets every byte", async () => {
    const socket = connect(keeper.boot.socketPath).pause();
    await start({ command: "read x; head -c 300000000 /dev/zero", processId: "stalled" });
    const chunks: Buffer[] = [];
    socket.write(
      `GET /v1/processes/stalled/logs?follow=true HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer ${keeper.boot.secret}\r\n` +
        `${FENCE_HEADER}: 1\r\nAccept: ${LOG_FRAMES_TYPE}\r\nConnection: close\r\n\r\n`,
    );
    await keeper.request("/v1/processes/stalled/stdin", { method: "POST", body: "\n" });
    const written = async () => (await wait("stalled", 100)).log.nextOffset;
    for (let before = -1, now = await written(); now !== before; now = await written()) before = now;
    expect(await written()).toBeLessThan(64 * 1024 * 1024);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk)).resume();
    await new Promise((resolve) => socket.once("end", resolve));
    const events = [...new FrameDecoder().push(dechunk(Buffer.concat(chunks)))];
    let at = 0;
    for (const event of events) {
      if (event.type === "truncated") expect(event.from).toBe(at);
      else expect("offset" in event && event.offset).toBe(at);
      at = event.type === "truncated" ? event.to : at + ("bytes" in event ? event.bytes.length : 0);
    }
    expect(at).toBe(300_000_000);
    expect(events.filter(({ type }) => type === "truncated")).toEqual([]);
  });

  test("a client that comes back with its offset misses nothing and sees nothing twice", async () => {
    await start({ command: "for i in $(seq 2000); do echo line $i; done", processId: "seq" });
    await wait("seq");
    const whole = Array.from({ length: 2000 }, (_, i) => `line ${i + 1}\n`).join("");
    for (const since of [0, 1, 6, 4000, whole.length - 1, whole.length]) {
      expect(text(await logs("seq", `since=${since}`))).toBe(`${whole.slice(since)}exit`);
    }
  });

  test("interrupted in the middle of a flow, again and again: the whole is exact", async () => {
    await start({
      command: "i=0; while test $i -lt 300; do echo $i; i=$((i+1)); sleep 0.002; done",
      processId: "cut",
    });
    let got = "";
    for (let done = false; !done; ) {
      const gone = new AbortController();
      const response = await keeper.request(`/v1/processes/cut/logs?follow=1&since=${got.length}`, {
        headers: { Accept: "application/octet-stream" },
        signal: gone.signal,
      });
      const reader = response.body?.getReader();
      for (let i = 0; i < 20 && !done; i++) {
        const part = await reader?.read();
        done = part?.done ?? true;
        got += Buffer.from(part?.value ?? []).toString();
      }
      gone.abort();
    }
    expect(got).toBe(Array.from({ length: 300 }, (_, i) => `${i}\n`).join(""));
  });

  test("server-sent events carry the offset after them; Last-Event-ID continues", async () => {
    await start({ command: "printf abc; sleep 0.1; printf de >&2", processId: "sse" });
    await wait("sse");
    const sse = async (headers: Record<string, string> = {}, query = "") => {
      const response = await keeper.request(`/v1/processes/sse/logs${query}`, { headers });
      expect(response.headers.get("Content-Type")).toBe("text/event-stream");
      return response.text();
    };
    const exit =
      '{"offset":5,"exitCode":0,"signal":null,"timedOut":false,"cancelled":false,"oomKilled":false}';
    const err = 'id: 5\nevent: stderr\ndata: {"offset":3,"data":"ZGU="}\n\n';
    const end = `id: 5\nevent: exit\ndata: ${exit}\n\n`;
    expect(await sse()).toBe(`id: 3\nevent: stdout\ndata: {"offset":0,"data":"YWJj"}\n\n${err}${end}`);
    expect(await sse({ "Last-Event-ID": "3" })).toBe(err + end);
    expect(await sse({}, "?stream=stderr")).toBe(err + end);
  });

  test("one stream alone, in every form", async () => {
    await start({ command: "printf a; sleep 0.05; printf b >&2; sleep 0.05; printf c", processId: "mixed" });
    await wait("mixed");
    expect(text(await logs("mixed", "stream=stdout"))).toBe("acexit");
    expect(text(await logs("mixed", "stream=stderr&since=1"))).toBe("bexit");
    const raw = await keeper.request("/v1/processes/mixed/logs?stream=stderr", {
      headers: { Accept: "application/octet-stream" },
    });
    expect(await raw.text()).toBe("b");
  });

  test("a silent follow is not cut", async () => {
    await start({ command: "read x; echo end", processId: "silent" });
    const response = await keeper.request("/v1/processes/silent/logs?follow=1");
    const body = response.text();
    await Bun.sleep(12_000); // past the runtime's own limit of 10 s
    await keeper.request("/v1/processes/silent/stdin", { method: "POST", body: "\n" });
    expect(await body).toStartWith(": keep-alive\n\nid: 4\nevent: stdout\n");
  });

  test.each(["since=-1", "since=x", "follow=maybe", "stream=stdin", "sinse=1"])(
    "bad query %s",
    async (query) => {
      expect((await keeper.call(`/v1/processes/p/logs?${query}`)).body.error.code).toBe("invalid_argument");
    },
  );
});

describe("stdin", () => {
  test("two writers keep their chunks whole", async () => {
    await start({ command: "cat", processId: "two" });
    const lines = ["a", "b"].map((letter) => `${letter.repeat(50_000)}\n`);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        keeper.request("/v1/processes/two/stdin", { method: "POST", body: lines[i % 2] ?? "" }),
      ),
    );
    expect((await keeper.request("/v1/processes/two/stdin/close", { method: "POST" })).status).toBe(204);
    await wait("two");
    const out = text(await logs("two")).replace(/exit$/, "");
    expect(out.split("\n").slice(0, -1).sort()).toEqual([
      ...Array(10).fill("a".repeat(50_000)),
      ...Array(10).fill("b".repeat(50_000)),
    ]);
  });

  test("a long body is streamed with backpressure", async () => {
    await start({ command: "sleep 0.3; wc -c", processId: "count" });
    const chunk = new Uint8Array(100_000);
    let sent = 0;
    const body = new ReadableStream({
      pull(to) {
        sent += 1;
        if (sent > 200) return to.close();
        to.enqueue(chunk);
      },
    });
    await keeper.request("/v1/processes/count/stdin", { method: "POST", body });
    await keeper.request("/v1/processes/count/stdin/close", { method: "POST" });
    await wait("count");
    expect(text(await logs("count"))).toBe("20000000\nexit");
  });

  test("writing to what is closed or gone is an error", async () => {
    await start({ command: "sleep 100", processId: "closed" });
    await keeper.request("/v1/processes/closed/stdin/close", { method: "POST" });
    const write = async (id: string) =>
      (await keeper.request(`/v1/processes/${id}/stdin`, { method: "POST", body: "x" })).json();
    expect((await write("closed")).error.code).toBe("wrong_state");
    await keeper.call("/v1/processes/closed/kill", {});
    expect((await write("closed")).error.message).toBe("the process closed has ended");
    await start({ command: "sleep 0.2", processId: "given", stdin: "x" });
    expect((await write("given")).error.message).toContain("was given at its start");
  });

  test("a writer that waits for a program that dies is told so", async () => {
    await start({ command: "sleep 100", processId: "deaf" });
    const writing = keeper.request("/v1/processes/deaf/stdin", { method: "POST", body: "x".repeat(500_000) });
    await Bun.sleep(100);
    await keeper.call("/v1/processes/deaf/kill", {});
    expect((await writing).status).toBe(409);
  });
});

describe("ending", () => {
  /** What is between its fork and its program shows no environment, and is known by nothing then. */
  async function running(count: number): Promise<void> {
    for (let i = 0; i < 500 && keeper.processes().length !== count; i++) await Bun.sleep(10);
    expect(keeper.processes().length).toBe(count);
  }

  test("a wait never kills", async () => {
    await start({ command: "sleep 100", processId: "waited" });
    const { body } = await keeper.call("/v1/processes/waited/wait?timeoutMs=50");
    expect(body.status).toEqual({ state: "running" });
    await keeper.call("/v1/processes/waited/kill", {});
  });

  test("kill ends the whole tree, daemons too, and says how it was checked", async () => {
    await start({ command: ["python3", fixture("daemon.py")], processId: "daemon" });
    await Bun.sleep(300); // it forks twice, and one of the three ends
    await running(2);
    const { body } = await keeper.call("/v1/processes/daemon/kill", {});
    expect(body.status).toMatchObject({
      state: "exited",
      signal: "SIGKILL",
      exitCode: 137,
      cancelled: true,
      kill: { verified: "lineage", killed: 2, survivors: [], unattributed: [] },
    });
    expect(keeper.processes()).toEqual([]);
  });

  test("kill of one that has ended ends what it left running", async () => {
    await start({ command: "sleep 1000 & sleep 1000 & exit 0", processId: "parent" });
    await wait("parent");
    await running(2);
    const { body } = await keeper.call("/v1/processes/parent/kill", {});
    expect(body.status).toMatchObject({ exitCode: 0, cancelled: false, kill: { killed: 2, survivors: [] } });
    expect(keeper.processes()).toEqual([]);
  });

  test("signals reach the program, or its group", async () => {
    const command = "trap 'echo got; exit 9' USR1; sleep 100 & wait; wait";
    await start({ command, processId: "usr" });
    await running(2);
    await Bun.sleep(50); // the trap is set before, but it must wait, too
    expect((await keeper.call("/v1/processes/usr/signal", { signal: "SIGUSR1" })).status).toBe(200);
    expect((await wait("usr")).status).toMatchObject({ exitCode: 9, signal: null });
    await running(1); // the sleep
    await keeper.call("/v1/processes/usr/kill", {});
    await start({ command: "sleep 100 | sleep 100", processId: "group" });
    await running(3);
    await keeper.call("/v1/processes/group/signal", { signal: "SIGINT", target: "group" });
    expect((await wait("group")).status).toMatchObject({ signal: "SIGINT", exitCode: 130 });
    expect(keeper.processes()).toEqual([]);
    expect((await keeper.call("/v1/processes/group/signal", { signal: "SIGINT" })).body.error.code).toBe(
      "wrong_state",
    );
    expect((await keeper.call("/v1/processes/group/signal", { signal: "SIGFOO" })).status).toBe(400);
  });

  test("its own timeout", async () => {
    await start({ command: "sleep 100", processId: "late", timeoutMs: 100 });
    expect((await wait("late")).status).toMatchObject({ state: "exited", timedOut: true, exitCode: 124 });
  });
});

describe("wait-for-port", () => {
  const port = 20_000 + (process.pid % 20_000);
  const ask = async (id: string, timeoutMs: number) =>
    (await keeper.call(`/v1/processes/${id}/wait-for-port?port=${port}&timeoutMs=${timeoutMs}`)).body;

  test("somebody else's port is not taken for ours; a grandchild's is ours", async () => {
    const other = Bun.serve({ port, hostname: "127.0.0.1", fetch: () => new Response() });
    await start({ command: "sleep 100", processId: "portless" });
    expect(await ask("portless", 200)).toEqual({ port, listening: false, status: { state: "running" } });
    await other.stop(true);
    await keeper.call("/v1/processes/portless/kill", {});
    await start({ command: ["python3", fixture("listen.py"), String(port)], processId: "listener" });
    expect(await ask("listener", 5000)).toEqual({ port, listening: true, status: { state: "running" } });
    await keeper.call("/v1/processes/listener/kill", {});
    expect(await ask("listener", 5000)).toMatchObject({ listening: false, status: { state: "exited" } });
  });
});

/** The body of a chunked HTTP/1.1 answer, read without a client that would take it at its own pace. */
function dechunk(answer: Buffer): Buffer {
  let at = answer.indexOf("\r\n\r\n") + 4;
  const parts: Buffer[] = [];
  for (;;) {
    const lineEnd = answer.indexOf("\r\n", at);
    const size = Number.parseInt(answer.toString("latin1", at, lineEnd), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 4 + size;
  }
}
