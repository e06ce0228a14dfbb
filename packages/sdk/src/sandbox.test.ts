import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, type LogEvent, Sandbox } from "./index.ts";
import { FakeServer } from "./testing/fake-server.ts";

let fake: FakeServer;

beforeEach(() => {
  fake = new FakeServer();
});
afterEach(() => fake.close());

function connection(): { url: string; token: string; fetch: FakeServer["fetch"]; patienceMs: number } {
  return { url: "http://fake", token: fake.token, fetch: fake.fetch, patienceMs: 2000 };
}

async function text(events: AsyncIterable<LogEvent>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const event of events) if ("bytes" in event) pieces.push(event.bytes);
  return Buffer.concat(pieces).toString();
}

test("create, get, getOrCreate and list speak of the same sandbox", async () => {
  const made = await Sandbox.create({ name: "issue-42", network: "none" }, connection());
  expect(made.info).toMatchObject({ name: "issue-42", state: "running", spec: { network: "none" } });
  expect((await Sandbox.get("issue-42", connection())).id).toBe(made.id);
  expect((await Sandbox.getOrCreate({ name: "issue-42", network: "none" }, connection())).id).toBe(made.id);
  const conflict = await Sandbox.getOrCreate({ name: "issue-42" }, connection()).catch((error) => error);
  expect(conflict).toMatchObject({ code: "spec_conflict" });
  for (let i = 0; i < 4; i++) await Sandbox.create({}, connection());
  expect((await Sandbox.list(connection())).length).toBe(5);
  expect((await Sandbox.list({ ...connection(), limit: 3 })).length).toBe(3);
});

test("a create whose answer was lost is repeated and makes one sandbox", async () => {
  fake.faults.loseAnswers = 2;
  await Sandbox.create({}, connection());
  expect(fake.sandboxes.size).toBe(1);
});

test("exec gives the whole result, with the generation that answered", async () => {
  const sbx = await Sandbox.create({}, connection());
  const result = await sbx.exec("cat; echo err >&2; exit 3", { stdin: new Uint8Array([104, 105]) });
  expect(result).toMatchObject({
    status: "exited",
    exitCode: 3,
    stdout: "hi",
    stderr: "err\n",
    generation: 1,
    continuity: "fresh",
  });
});

test("an exec whose answer was lost is attached to, and ran once", async () => {
  const sbx = await Sandbox.create({}, connection());
  fake.faults.loseAnswers = 3;
  fake.faults.refuse = 2;
  const { stdout } = await sbx.exec("echo $$");
  expect(fake.runs.size).toBe(1);
  expect(stdout).toBe(`${[...fake.runs.values()][0]?.pid}\n`);
});

test("an abort cancels the command and rejects with the reason", async () => {
  const sbx = await Sandbox.create({}, connection());
  const abort = new AbortController();
  const running = sbx.exec("sleep 1000", { commandId: "c1", signal: abort.signal });
  const reason = new Error("changed my mind");
  await until(() => fake.runs.has("c1"));
  abort.abort(reason);
  expect(await running.catch((error) => error)).toBe(reason);
  expect(fake.runs.get("c1")?.ending).toMatchObject({ cancelled: true, signal: "SIGKILL" });
});

test("a cancel that overtakes its command waits for it to arrive", async () => {
  const sbx = await Sandbox.create({}, connection());
  fake.faults.execArrivesAfterMs = 40;
  const abort = new AbortController();
  const running = sbx.exec("sleep 1000", { commandId: "c1", signal: abort.signal });
  abort.abort();
  expect((await running.catch((error) => error)).name).toBe("AbortError");
  expect(fake.runs.get("c1")?.ending).toMatchObject({ cancelled: true });
});

test("an abort whose cancel fails says that the command may still run", async () => {
  const sbx = await Sandbox.create({}, { ...connection(), patienceMs: 50 });
  const abort = new AbortController();
  const running = sbx.exec("sleep 1000", { commandId: "c1", signal: abort.signal });
  await until(() => fake.runs.has("c1"));
  fake.faults.refuse = 100;
  abort.abort();
  const error = await running.catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "unavailable", started: "unknown" });
  expect(error.message).toContain("may still be running");
});

test("yieldMs answers while it runs; getCommand and its log tell the rest", async () => {
  const sbx = await Sandbox.create({}, connection());
  const dir = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
  const isOpen = join(dir, "open");
  const waiting = `until [ -e ${isOpen} ]; do sleep 0.01; done; echo late`;
  const first = await sbx.exec(waiting, { commandId: "c1", yieldMs: 0 });
  expect(first.status).toBe("running");
  writeFileSync(isOpen, "");
  expect(await text(sbx.commandLogs("c1", { follow: true }))).toBe("late\n");
  expect(await sbx.getCommand("c1")).toMatchObject({ status: "exited", stdout: "late\n" });
  rmSync(dir, { recursive: true });
});

test("another generation than asked for is state_lost, with nothing started", async () => {
  const sbx = await Sandbox.create({}, connection());
  const error = await sbx.exec("true", { ifGeneration: 7 }).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "state_lost", started: "no" });
  expect(fake.runs.size).toBe(0);
});

test("a followed log is byte-exact over a connection that is cut again and again", async () => {
  const sbx = await Sandbox.create({}, connection());
  const process = await sbx.startProcess("for i in $(seq 200); do echo line $i; done; echo end >&2; exit 4");
  await process.wait();
  const run = fake.runs.get(process.processId);
  const whole = `${run?.text("stdout")}${run?.text("stderr")}`.length;
  fake.faults.cutLogsAfterBytes = whole / 2;
  // Frames of a fast program may be large: a cut connection must have room for one to make progress.
  const largest = Math.max(
    ...(run?.events ?? []).map((event) => ("bytes" in event ? event.bytes.length : 300)),
  );
  fake.faults.cutLogsAfterBytes = largest + 20;
  let seen = "";
  let exitCode: number | undefined;
  for await (const event of process.logs({ follow: true })) {
    if (event.type === "exit") exitCode = event.exitCode;
    if ("bytes" in event) seen += Buffer.from(event.bytes).toString();
  }
  expect(seen.length).toBe(whole);
  expect(seen).toContain("line 1\nline 2\n");
  expect(exitCode).toBe(4);
});

test("a log from an offset within a frame begins at exactly that byte", async () => {
  const sbx = await Sandbox.create({}, connection());
  const process = await sbx.startProcess("printf 0123456789");
  await process.wait();
  expect(await text(process.logs({ since: 7 }))).toBe("789");
});

test("a sandbox that stops under a followed log: where to read on is said", async () => {
  const sbx = await Sandbox.create({}, connection());
  const process = await sbx.startProcess("printf 01234; cat");
  fake.faults.cutLogsAfterBytes = 30;
  const reading = (async () => {
    for await (const _ of process.logs({ follow: true })) {
      await process.write("more, which cuts the connection");
      await sbx.stop();
    }
  })();
  expect(await reading.catch((error) => error)).toMatchObject({
    code: "wrong_state",
    message: "the log could not be followed to its end: sandbox box-1 is stopped",
    details: { nextOffset: 5 },
    started: "yes",
  });
});

test("a process: stdin, signal, status, list, kill", async () => {
  const sbx = await Sandbox.create({}, connection());
  const cat = await sbx.startProcess(["cat"]);
  await cat.write("one ");
  await cat.write(new TextEncoder().encode("two"));
  await cat.closeStdin();
  expect(await cat.wait()).toMatchObject({ state: "exited", exitCode: 0 });
  expect(await text(cat.logs())).toBe("one two");

  const sleeper = await sbx.startProcess(["sleep", "1000"], { processId: "sleeper" });
  expect(await sleeper.wait({ timeoutMs: 20 })).toEqual({ state: "running" });
  await sleeper.signal("SIGTERM");
  expect(await sleeper.wait()).toMatchObject({ state: "exited", signal: "SIGTERM" });
  expect((await sbx.listProcesses()).map((info) => info.processId)).toEqual([cat.processId, "sleeper"]);
  expect((await sbx.getProcess("sleeper")).pid).toBe(sleeper.pid);
});

test("a start whose answer was lost attaches to the first", async () => {
  const sbx = await Sandbox.create({}, connection());
  fake.faults.loseAnswers = 1;
  await sbx.startProcess("exit 0");
  expect(fake.runs.size).toBe(1);
});

test("waitForLog finds a match that is cut into pieces, with its groups", async () => {
  const sbx = await Sandbox.create({}, connection());
  const process = await sbx.startProcess(
    "printf 'liste'; sleep 0.05; printf 'ning on h\\303'; sleep 0.05; printf '\\251; '; cat",
  );
  const found = await process.waitForLog(/listening on (\S+);/);
  expect(found.match[1]).toBe("hé");
  const late = await process.waitForLog("no such thing", { timeoutMs: 50 }).catch((error) => error);
  expect(late).toMatchObject({ code: "wrong_state", retryable: true });
  await process.closeStdin();
  expect(await process.waitForLog("never").catch((error) => error.message)).toContain("ended before");
});

test("release ends this handle's readings and leaves the process running", async () => {
  const sbx = await Sandbox.create({}, connection());
  const process = await sbx.startProcess("echo up; cat");
  const reading = (async () => {
    for await (const event of process.logs({ follow: true })) if ("bytes" in event) await sbx.release();
  })();
  expect((await reading.catch((error) => error)).name).toBe("AbortError");
  expect(await process.status()).toEqual({ state: "running" });
  expect(await text(process.logs())).toBe("up\n");
});

test("delete waits for the evidence, and says so if there is none", async () => {
  const sbx = await Sandbox.create({}, connection());
  fake.faults.deletingFor = 1;
  const pending = await sbx.delete({ waitSeconds: 1 }).catch((error) => error);
  expect(pending).toMatchObject({ code: "cleanup_pending", retryable: true });
  await sbx.delete();
  expect(fake.sandboxes.size).toBe(0);
});

test("stop, start and refresh update the handle", async () => {
  const sbx = await Sandbox.create({}, connection());
  expect((await sbx.stop()).state).toBe("stopped");
  expect((await sbx.start()).state).toBe("running");
  expect((await sbx.refresh()).state).toBe("running");
  expect(await sbx.events()).toMatchObject([{ seq: 1, type: "created" }]);
});

test("a server that never answered is not waited for", async () => {
  fake.faults.refuse = 100;
  const error = await Sandbox.list(connection()).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(HoldfastError);
  expect(error).toMatchObject({ code: "unavailable", started: "no" });
  expect(error.hint).toContain("holdfast serve");
  expect(fake.requests.length).toBe(1);
});

test("what is not safe to repeat is not repeated", async () => {
  const sbx = await Sandbox.create({}, connection());
  const cat = await sbx.startProcess(["cat"]);
  fake.faults.loseAnswers = 1;
  const error = await cat.write("once").catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "unavailable", started: "unknown" });
  await cat.closeStdin();
  await cat.wait();
  expect(await text(cat.logs())).toBe("once");
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}
