import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { TestViewer } from "../terminal/test-viewer.ts";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

// A second each on a machine that does nothing else.
setDefaultTimeout(120_000);

// Burns CPU for 0.3 s, which is more than a trace of anything in here.
const BURN = `python3 -c 'import time
while time.process_time() < 0.3: pass'`;
const BURN_FOR_EVER = ["python3", "-c", "print(1, flush=True)\nwhile True: pass"];
const QUIESCED = { state: "quiesced" };
// Idleness of no time at all is enough: only what holds it awake now matters.
const AT_ONCE = 0;
const A_WHILE = 60_000;

/** Asks, and takes the answer back, so that the test can go on. */
async function ask(keeper: TestKeeper, lifetimeMs = AT_ONCE) {
  const { body } = await keeper.call("/v1/quiesce", { lifetimeMs });
  await keeper.call("/v1/resume", {});
  return body;
}

const look = async (keeper: TestKeeper) => (await keeper.call("/v1/activity")).body;

/** Resolves when the process has written this. */
async function written(keeper: TestKeeper, processId: string, text: string) {
  const log = await keeper.request(`/v1/processes/${processId}/logs?follow=1&stream=stdout`, {
    headers: { Accept: "application/octet-stream" },
  });
  let got = "";
  for await (const chunk of log.body ?? []) {
    got += Buffer.from(chunk).toString();
    if (got.includes(text)) return;
  }
}

/** Resolves when something has used more than a trace of CPU. */
async function worked(keeper: TestKeeper) {
  while ((await look(keeper)).heldAwakeBy.length === 0) await Bun.sleep(5);
}

const start = (keeper: TestKeeper, request: Record<string, unknown>) => keeper.call("/v1/processes", request);

test("nothing holds a new sandbox awake, but it was used just now", async () => {
  await using keeper = await startTestKeeper();
  expect(await ask(keeper)).toEqual(QUIESCED);
  await keeper.call("/v1/exec", { command: "true" });
  expect(await ask(keeper, A_WHILE)).toEqual({
    state: "busy",
    because: [expect.stringMatching(/^used 0\.\d s ago: /)],
    idleForMs: expect.any(Number),
  });
});

describe("a command in flight holds it awake", () => {
  test("also one whose caller has left, and from its end idle time counts", async () => {
    await using keeper = await startTestKeeper();
    await keeper.call("/v1/exec", { command: "sleep 0.3", commandId: "c1", yieldMs: 0 });
    expect(await ask(keeper)).toEqual({ state: "busy", because: ["command c1 is running"], idleForMs: 0 });
    expect(await look(keeper)).toEqual({ heldAwakeBy: ["command c1 is running"], idleForMs: 0 });
    await (await keeper.request("/v1/commands/c1/logs?follow=1")).text();
    expect(await ask(keeper)).toEqual(QUIESCED);
    expect((await look(keeper)).idleForMs).toBeLessThan(300);
  });

  test("in a session, running or waiting", async () => {
    await using keeper = await startTestKeeper();
    await keeper.call("/v1/sessions", { sessionId: "s" });
    for (const commandId of ["first", "second"])
      await keeper.call("/v1/sessions/s/exec", { command: "sleep 100", commandId, yieldMs: 0 });
    while ((await keeper.call("/v1/sessions/s")).body.running !== "first") await Bun.sleep(2);
    expect((await ask(keeper)).because).toEqual([
      "command first is running",
      "command second waits for its turn",
    ]);
  });

  test("a request whose body is still coming, too", async () => {
    await using keeper = await startTestKeeper();
    const rest = Promise.withResolvers<void>();
    const body = new ReadableStream({
      async start(to) {
        to.enqueue(Buffer.from('{"command":'));
        await rest.promise;
        to.enqueue(Buffer.from('"echo hi"}'));
        to.close();
      },
    });
    const answer = keeper.request("/v1/exec", { method: "POST", body });
    let judged = await ask(keeper);
    while (judged.state === "quiesced") judged = await ask(keeper);
    expect(judged).toEqual({ state: "busy", because: ["a request is being answered"], idleForMs: 0 });
    rest.resolve();
    expect((await (await answer).json()).stdout).toBe("hi\n");
  });
});

describe("a terminal", () => {
  const connect = (keeper: TestKeeper, query = "") => {
    const url = `ws+unix://${keeper.boot.socketPath}:/v1/terminals/t/connect?${query}`;
    return TestViewer.connect(url, {
      Authorization: `Bearer ${keeper.boot.secret}`,
      "Holdfast-Fence": "1",
    });
  };
  test("holds it awake while somebody is attached who may write, not for one who looks on", async () => {
    await using keeper = await startTestKeeper();
    await keeper.call("/v1/terminals", { id: "t", command: ["sleep", "100"] });
    const reader = await connect(keeper, "readonly=true");
    expect(await ask(keeper)).toEqual(QUIESCED);
    const writer = await connect(keeper);
    expect((await ask(keeper)).because).toEqual(["terminal t has a viewer"]);
    await writer.close();
    while ((await keeper.call("/v1/terminals/t")).body.writers > 0) await Bun.sleep(2);
    expect(await ask(keeper)).toEqual(QUIESCED);
    expect((await ask(keeper, A_WHILE)).because).toEqual([
      expect.stringContaining("a viewer of terminal t left"),
    ]);
    await reader.close();
  });
});

describe("work that is done inside", () => {
  test("a build holds it awake, a program that sleeps does not", async () => {
    await using keeper = await startTestKeeper();
    await start(keeper, { command: ["sleep", "100"], processId: "sleeps" });
    expect(await ask(keeper)).toEqual(QUIESCED);
    await start(keeper, { command: BURN_FOR_EVER, processId: "build" });
    await written(keeper, "build", "1");
    const held = /^process build used \d\.\d s of CPU since the last check$/;
    await worked(keeper);
    expect(await ask(keeper)).toEqual({
      state: "busy",
      because: [expect.stringMatching(held)],
      idleForMs: 0,
    });
    await keeper.call("/v1/processes/build/kill", {});
    expect(await ask(keeper)).toEqual(QUIESCED);
  });

  test("what ended since the last check is not forgotten, but counted once: the first check has it all", async () => {
    await using keeper = await startTestKeeper();
    await start(keeper, { command: `${BURN}; echo done; sleep 100; :`, processId: "server" });
    await written(keeper, "server", "done");
    expect((await ask(keeper)).because).toEqual([expect.stringContaining("process server used 0.")]);
    expect(await ask(keeper)).toEqual(QUIESCED);
  });

  test("a look does not use up what the next check is to see", async () => {
    await using keeper = await startTestKeeper();
    await start(keeper, { command: `${BURN}; echo done; sleep 100; :`, processId: "server" });
    await written(keeper, "server", "done");
    const held = { heldAwakeBy: [expect.stringContaining("process server used")], idleForMs: 0 };
    expect([await look(keeper), await look(keeper)]).toEqual([held, held]);
    expect((await ask(keeper)).state).toBe("busy");
    expect((await look(keeper)).heldAwakeBy).toEqual([]);
  });

  test("output counts from when it was written", async () => {
    await using keeper = await startTestKeeper();
    await start(keeper, { command: "while echo x; do sleep 0.02; done", processId: "chatty" });
    await written(keeper, "chatty", "x\nx\nx\nx");
    expect((await ask(keeper, 500)).because).toEqual([
      expect.stringMatching(/^used 0\.\d s ago: process chatty wrote output$/),
    ]);
    await keeper.call("/v1/processes/chatty/kill", {});
  });

  test("what a command left running is named by it", async () => {
    await using keeper = await startTestKeeper();
    const command = `setsid ${BURN.replace("0.3", "100")} </dev/null >/dev/null 2>&1 &`;
    await keeper.call("/v1/exec", { command, commandId: "c1" });
    await worked(keeper);
    expect((await ask(keeper)).because).toEqual([
      expect.stringMatching(/^what command c1 left running used 0\.\d s of CPU/),
    ]);
  });

  test("a session's own shell does not count with what its commands used, but its jobs do", async () => {
    await using keeper = await startTestKeeper();
    await keeper.call("/v1/sessions", { sessionId: "s" });
    await keeper.call("/v1/sessions/s/exec", { command: `${BURN}; for i in {1..100000}; do :; done` });
    expect(await ask(keeper)).toEqual(QUIESCED);
    await keeper.call("/v1/sessions/s/exec", { command: "while :; do :; done &" });
    await worked(keeper);
    expect((await ask(keeper)).because).toEqual([expect.stringMatching(/^a job of session s used 0\.\d s/)]);
  });
});

describe("keepsAwake", () => {
  test("always: as long as it runs; and the process says so", async () => {
    await using keeper = await startTestKeeper();
    const request = { command: ["sleep", "100"], processId: "p", keepsAwake: "always" };
    expect((await start(keeper, request)).body.keepsAwake).toBe("always");
    const held = ["process p is running, and keeps it awake always"];
    expect((await ask(keeper)).because).toEqual(held);
    expect((await ask(keeper)).because).toEqual(held);
    await keeper.call("/v1/processes/p/kill", {});
    expect(await ask(keeper)).toEqual(QUIESCED);
  });

  test("never: neither CPU nor output, nor its end", async () => {
    await using keeper = await startTestKeeper();
    const command = "echo x; for i in $(seq 20); do echo y; done; while :; do echo z; sleep 0.001; done";
    await start(keeper, { command, processId: "p", keepsAwake: "never" });
    await written(keeper, "p", "z\nz\nz\nz");
    const begunAt = performance.now();
    const before = await look(keeper);
    const now = (await keeper.call("/v1/processes/p")).body.log.nextOffset;
    while ((await keeper.call("/v1/processes/p")).body.log.nextOffset < now + 400) await Bun.sleep(5);
    const after = await look(keeper);
    expect([before.heldAwakeBy, after.heldAwakeBy]).toEqual([[], []]);
    expect(after.idleForMs - before.idleForMs).toBeGreaterThan((performance.now() - begunAt) / 2);
    await keeper.call("/v1/processes/p/signal", { signal: "SIGKILL" });
    await keeper.call("/v1/processes/p/wait");
    expect((await ask(keeper, A_WHILE)).because).toEqual([expect.stringContaining("/signal was answered")]);
    expect(await ask(keeper)).toEqual(QUIESCED);
  });

  test("of a session's process, too; a value that does not exist is refused", async () => {
    await using keeper = await startTestKeeper();
    await keeper.call("/v1/sessions", { sessionId: "s" });
    const request = { command: "while :; do :; done", processId: "p", keepsAwake: "never" };
    expect((await keeper.call("/v1/sessions/s/processes", request)).body.keepsAwake).toBe("never");
    await Bun.sleep(200); // the time in which it would have used more than a trace
    expect(await ask(keeper)).toEqual(QUIESCED);
    expect((await start(keeper, { command: "true", keepsAwake: "often" })).status).toBe(400);
  });
});

test("looking is never use, however often", async () => {
  await using keeper = await startTestKeeper();
  await start(keeper, { command: "echo up; sleep 100; :", processId: "p" });
  await keeper.call("/v1/exec", { command: "echo", commandId: "c" });
  await keeper.call("/v1/sessions", { sessionId: "s" });
  const looks = [
    ...["/v1/keeper", "/v1/activity", "/v1/processes", "/v1/processes/p", "/v1/processes/p/logs"],
    ...["/v1/processes/p/wait?timeoutMs=1", "/v1/processes/p/wait-for-port?port=1&timeoutMs=1"],
    ...["/v1/commands/c", "/v1/commands/c/logs?follow=1", "/v1/sessions", "/v1/sessions/s", "/v1/terminals"],
  ];
  let idleForMs = (await look(keeper)).idleForMs;
  for (let round = 0; round < 5; round++) {
    for (const path of looks) expect((await (await keeper.request(path)).bytes()).length).toBeGreaterThan(0);
    const next = (await look(keeper)).idleForMs;
    expect(next).toBeGreaterThan(idleForMs);
    idleForMs = next;
  }
  await written(keeper, "p", "up");
  expect((await look(keeper)).idleForMs).toBeGreaterThan(idleForMs);
  const touched = (await keeper.call("/v1/touch", {})).body;
  expect(touched).toEqual({ heldAwakeBy: [], idleForMs: expect.any(Number) });
  expect(touched.idleForMs).toBeLessThan(idleForMs);
});
