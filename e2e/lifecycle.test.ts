import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, Sandbox } from "holdfast";
import { hostProcesses, keeperPid, nextEvent, TestServer } from "./harness.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.dispose());

/** What lies between the two turns of an agent. */
const betweenTurns = {
  "nothing more": async () => {},
  "a kill -9 of the server": () => server.restart("SIGKILL"),
};

for (const [what, between] of Object.entries(betweenTurns)) {
  test(`two turns and ${what} between them: the same machine, until it has been idle for its lifetime`, async () => {
    const sandbox = await Sandbox.create({ lifetimeSeconds: 3 }, server.at);
    const first = await sandbox.beginTurn();
    const left = await sandbox.exec("hostname > /tmp/h; sleep 1000 > /dev/null 2>&1 & echo $!");
    await first.end();
    await between();

    const second = await sandbox.beginTurn();
    const found = await sandbox.exec(
      `cat /tmp/h; hostname; tr '\\0' ' ' < /proc/${left.stdout.trim()}/cmdline`,
    );
    const { generation, stdout } = found;
    expect({ generation, lines: stdout.split("\n") }).toEqual({
      generation: 1,
      lines: [sandbox.name, sandbox.name, "sleep 1000 "],
    });
    await second.end();

    expect(await nextEvent(sandbox, "gone")).toMatchObject({ cause: "idle", detail: { evidence: "exited" } });
    expect(await hostProcesses(sandbox.id)).toEqual([]);
  });

  test(`not persistent, and ${what} before its turn ends: gone after it, with evidence`, async () => {
    const sandbox = await Sandbox.create({ persistent: false, lifetimeSeconds: 60 }, server.at);
    const turn = await sandbox.beginTurn();
    await sandbox.exec("hostname > /tmp/h; sleep 1000 > /dev/null 2>&1 &");
    await between();
    await turn.end();
    for await (const _ of sandbox.followEvents());
    const events = (await Sandbox.events(sandbox.id, server.at)).map(({ type, cause, detail }) =>
      [type, cause, detail.evidence].filter(Boolean).join(" "),
    );
    expect(events.filter((event) => event !== "adopted")).toEqual([
      "created",
      "launching",
      "live",
      "turn_started",
      "turn_ended turn_end",
      "stopping turn_end",
      "gone turn_end exited",
      "disk_removed",
      "deleted turn_end",
    ]);
    expect(await failure(sandbox.exec("true"))).toMatchObject({ code: "gone", status: 410 });
    expect(await hostProcesses(sandbox.id)).toEqual([]);
  });
}

test("after an idle stop the next use brings it back, and whoever remembers the old one is told", async () => {
  const sandbox = await Sandbox.create({ lifetimeSeconds: 1 }, server.at);
  const shell = await sandbox.createSession();
  await shell.exec("mkdir -p app && cd app && export TOKEN=secret");
  await nextEvent(sandbox, "gone");

  const path = `/v1/sandboxes/${sandbox.id}/exec`;
  const body = JSON.stringify({ command: "true" });
  const refused = await server.fetch(path, { method: "POST", body, headers: { "If-Generation": "1" } });
  expect({ status: refused.status, ...(await refused.json()) }).toMatchObject({
    status: 409,
    error: {
      code: "state_lost",
      started: "no",
      details: { continuity: "same-filesystem", generation: 1, lastDeath: { cause: "idle" } },
    },
  });
  expect((await sandbox.refresh()).state).toBe("stopped");

  // The session's own state is on the disk.
  const back = await shell.exec('echo "$TOKEN in ${PWD##*/}"');
  expect(back).toMatchObject({ stdout: "secret in app\n", generation: 2, continuity: "same-filesystem" });
});

test('onIdle "remove": gone with its disk', async () => {
  const sandbox = await Sandbox.create({ lifetimeSeconds: 1, onIdle: "remove" }, server.at);
  const gone = await nextEvent(sandbox, "deleted");
  expect(gone).toMatchObject({ cause: "idle" });
  expect(await failure(sandbox.refresh())).toMatchObject({ code: "gone", status: 410 });
  expect(await left(sandbox)).toEqual({ processes: [], disk: false });
});

test("its greatest age ends it, whatever it is doing", async () => {
  const sandbox = await Sandbox.create({ maxLifetimeSeconds: 2 }, server.at);
  const turn = await sandbox.beginTurn();
  const busy = await sandbox.startProcess("while :; do sleep 0.1; echo busy; done", { keepsAwake: "always" });
  expect(await nextEvent(sandbox, "gone")).toMatchObject({ cause: "max_lifetime" });
  expect(await hostProcesses(busy.processId)).toEqual([]);
  expect((await sandbox.refresh()).info).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "max_lifetime" },
  });
  await turn.end();
});

test("scenario 16: what was acknowledged before server and keeper were killed is read after the next start", async () => {
  const sandbox = await Sandbox.create({}, server.at);
  const { commandId } = await sandbox.exec("seq 1000; sync");
  const process_ = await sandbox.startProcess("echo from a process; sleep 1000");
  await process_.waitForLog(/from a process/);
  const keeper = await keeperPid(sandbox);
  await server.signal("SIGKILL");
  process.kill(keeper, "SIGKILL");
  await server.boot();
  await sandbox.start();
  expect(await sandbox.getCommand(commandId)).toMatchObject({
    exitCode: 0,
    stdout: Array.from({ length: 1000 }, (_, i) => `${i + 1}\n`).join(""),
  });
  let text = "";
  for await (const event of process_.logs()) {
    if (event.type === "stdout") text += new TextDecoder().decode(event.bytes);
  }
  expect(text).toBe("from a process\n");
  expect((await process_.info()).status).toMatchObject({ state: "lost" });
});

test("scenario 17: sandboxes do not notice that their server is restarted in order", async () => {
  const sandboxes = await Promise.all([1, 2, 3].map(() => Sandbox.create({}, server.at)));
  const keepers = await Promise.all(sandboxes.map(keeperPid));
  for (let i = 0; i < 3; i++) await server.restart("SIGTERM");
  expect(await Promise.all(sandboxes.map(keeperPid))).toEqual(keepers);
  const answers = await Promise.all(sandboxes.map((sandbox) => sandbox.exec("echo here")));
  expect(answers.map(({ stdout, generation }) => [stdout, generation])).toEqual(
    sandboxes.map(() => ["here\n", 1]),
  );
});

test("scenario 31: with half of its rows lost, a sandbox is found again or deleted, and never forgotten", async () => {
  const bare = await Sandbox.create({ labels: { team: "web" } }, server.at);
  const lost = await Sandbox.create({}, server.at);
  await lost.exec("echo precious > /workspace/work");
  await server.signal("SIGKILL");
  const db = new Database(join(server.dataDir, "holdfast.db"));
  db.run("UPDATE sandbox SET spec = '{}', labels = '{}' WHERE id = ?", [bare.id]);
  db.run("DELETE FROM sandbox WHERE id = ?", [lost.id]);
  db.close();
  await server.boot();

  await bare.delete();
  expect(await left(bare)).toEqual({ processes: [], disk: false });
  // Its lease and its disk are there, so it is somebody's: under a name that says so, and still running.
  const recovered = await Sandbox.get(`recovered-${lost.id}`, server.at);
  expect(await recovered.exec("cat /workspace/work")).toMatchObject({ stdout: "precious\n", generation: 1 });
  await recovered.delete();
  expect(await left(lost)).toEqual({ processes: [], disk: false });
});

test("a launch that never works ends in `failed` with its reason after three tries, and then only a start tries again", async () => {
  const sandbox = await Sandbox.create({}, server.at);
  await sandbox.stop();
  const repair = breakKeepers(server.dataDir);
  try {
    const tries = [1, 2, 3, 4, 5].map(() => () => failure(sandbox.exec("true")));
    const codes: unknown[] = [];
    for (const attempt of tries) codes.push((await attempt()).code);
    expect(codes).toEqual(codes.map(() => "launch_failed"));
    expect((await sandbox.refresh()).state).toBe("failed");
    const { failure: reason } = await sandbox.why();
    expect(reason).toContain("launch_failed");
    expect(await launches(sandbox)).toEqual([1, 2, 3, 4]);

    expect(await failure(sandbox.start())).toMatchObject({ code: "launch_failed" });
    expect(await launches(sandbox)).toEqual([1, 2, 3, 4, 5]);
  } finally {
    repair();
  }
  await sandbox.start();
  expect(await sandbox.exec("echo back")).toMatchObject({ stdout: "back\n", generation: 6 });
  expect((await sandbox.why()).failure).toBeUndefined();
});

/** What the host still has of it. */
async function left({ id }: Sandbox): Promise<{ processes: string[]; disk: boolean }> {
  const disk = readdirSync(join(server.dataDir, "sandboxes")).includes(id);
  return { processes: await hostProcesses(id), disk };
}

async function launches(sandbox: Sandbox): Promise<unknown[]> {
  const events = await sandbox.events();
  return events.filter(({ type }) => type === "launching").map(({ detail }) => detail.generation);
}

/** The program itself, as the provider keeps it: what starts then is no keeper. */
function breakKeepers(dataDir: string): () => void {
  const files = readdirSync(join(dataDir, "keepers")).map((hash) => join(dataDir, "keepers", hash, "keeper"));
  for (const file of files) {
    renameSync(file, `${file}.whole`);
    writeFileSync(file, "no program at all\n");
    chmodSync(file, 0o755);
  }
  return () => {
    for (const file of files) renameSync(`${file}.whole`, file);
  };
}

async function failure(call: Promise<unknown>): Promise<HoldfastError> {
  const error = await call.then(
    () => "it worked",
    (error: unknown) => error,
  );
  if (!(error instanceof HoldfastError)) throw new Error(`expected a refusal, but: ${String(error)}`);
  return error;
}
