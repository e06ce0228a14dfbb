import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import { missingPostgres, type Postgres, startPostgres } from "../packages/testkit/src/postgres.ts";
import { keepers } from "./crash-world.ts";
import { TestServer } from "./harness.ts";
import { RawClient } from "./raw-client.ts";

const missing = missingPostgres();
let postgres: Postgres;
beforeAll(async () => {
  if (missing === undefined) postgres = await startPostgres();
});
afterAll(() => postgres?.stop());

interface Pair {
  readonly a: TestServer;
  readonly b: TestServer;
}

/** Two servers on one PostgreSQL and one data dir. All at once: each of them mostly waits. */
function withTwo(title: string, work: (pair: Pair) => Promise<void>): void {
  const titled = async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-shared-"));
    const args = ["--database", await postgres.newDatabase()];
    const a = await TestServer.start({ dataDir, args });
    const b = await TestServer.start({ dataDir, args });
    try {
      await work({ a, b });
    } finally {
      // Also one that is frozen.
      await a.signal("SIGKILL");
      await b.dispose();
    }
  };
  test.concurrent.skipIf(missing !== undefined)(title, titled, 240_000);
}

withTwo(
  "a sandbox that was made on one server is used, stopped and deleted on the other",
  async ({ a, b }) => {
    const onA = await Sandbox.create({ name: "both" }, a.at);
    const onB = await Sandbox.get("both", b.at);
    const shell = await onA.createSession({ sessionId: "main" });
    await shell.exec("cd /tmp && export FROM=a");
    expect(await (await onB.getSession("main")).exec("echo $FROM $PWD")).toMatchObject({
      stdout: "a /tmp\n",
      generation: 1,
    });
    await onB.stop();
    expect((await onA.refresh()).state).toBe("stopped");
    expect(await onA.exec("echo again")).toMatchObject({ stdout: "again\n", generation: 2 });
    await onB.delete();
    expect(await onA.exec("true").catch(codeOf)).toBe("gone");
    expect(story(await Sandbox.events(onA.id, a.at))).toEqual(
      wholeStory(["stop_requested", "delete_requested"]),
    );
  },
);

withTwo("many that get or create one name on both servers get one sandbox", async ({ a, b }) => {
  const all = await Promise.all(
    Array.from({ length: 40 }, (_, i) => Sandbox.getOrCreate({ name: "shared" }, (i % 2 === 0 ? a : b).at)),
  );
  expect(new Set(all.map(({ id }) => id)).size).toBe(1);
  expect(story(await Sandbox.events("shared", b.at))).toEqual(["created", "launching 1", "live 1"]);
});

withTwo(
  "a server that is killed leaves its sandboxes to the other, which finds them by itself",
  async ({ a, b }) => {
    const sandboxes = await Promise.all([1, 2, 3].map(() => Sandbox.create({}, a.at)));
    const turn = await sandboxes[0]?.beginTurn();
    process.kill(a.pid, "SIGKILL");
    const killedAt = performance.now();
    const onB = await Promise.all(sandboxes.map(({ id }) => Sandbox.get(id, b.at)));
    const [first] = onB;
    // Whoever needs one does not have to wait for that.
    expect(await first?.exec("echo here")).toMatchObject({ stdout: "here\n", generation: 1 });
    for (const sandbox of onB) while (!(await isInContact(sandbox))) await Bun.sleep(500);
    // At the next sweep, which is a minute away at most.
    expect(performance.now() - killedAt).toBeLessThan(75_000);
    if (turn !== undefined) await first?.endTurn(turn.turnId);
  },
);

withTwo(
  "scenario 4: a server that was stopped past its tickets and goes on does nothing twice",
  async ({ a, b }) => {
    const settled = await Sandbox.create({ name: "settled" }, a.at);
    const names = Array.from({ length: 6 }, (_, i) => `frozen-${i}`);
    for (const name of names) await Sandbox.create({ name }, { ...a.at, wait: false });
    // In the middle of what it does about them.
    process.kill(a.pid, "SIGSTOP");
    const onB = await Promise.all(names.map((name) => Sandbox.get(name, b.at)));
    const throughB = await Sandbox.get("settled", b.at);
    expect(await throughB.exec("echo b")).toMatchObject({ stdout: "b\n", generation: 1 });
    // Until the other has taken them over: it holds their tickets then, and gives up what was half done.
    for (const sandbox of onB) while ((await sandbox.refresh()).state === "creating") await Bun.sleep(200);
    process.kill(a.pid, "SIGCONT");

    const onA = await Promise.all(names.map((name) => Sandbox.get(name, a.at)));
    const used = await Promise.all([...onA.slice(0, 3), ...onB.slice(3)].map(untilItRuns));
    const other = await Promise.all([...onB.slice(0, 3), ...onA.slice(3)].map(untilItRuns));
    expect(other).toEqual(used);
    expect(await settled.exec("echo a")).toMatchObject({ stdout: "a\n", generation: 1 });
    const running = keepers();
    for (const { id } of [...onB, settled]) expect(running.filter((one) => one === id)).toEqual([id]);

    await Promise.all([...onA.slice(0, 3), ...onB.slice(3)].map((sandbox) => sandbox.delete()));
    for (const { id } of onB) expect(twice(story(await Sandbox.events(id, a.at)))).toEqual([]);
    expect(keepers().filter((id) => onB.some((sandbox) => sandbox.id === id))).toEqual([]);
  },
);

/** What happened to one generation more than once. */
function twice(events: readonly string[]): string[] {
  const kinds = events.map((event) => event.split(" ", 2).join(" "));
  return kinds.filter((kind, i) => kinds.indexOf(kind) !== i);
}

/** Its generation, once a command has run; what the other server still holds has to be waited for. */
async function untilItRuns(sandbox: Sandbox): Promise<number> {
  for (;;) {
    const answer = await sandbox.exec("true").catch((error: unknown) => error);
    if (!(answer instanceof HoldfastError)) return (answer as { generation: number }).generation;
    if (!answer.retryable) throw answer;
    await Bun.sleep(200);
  }
}

async function isInContact(sandbox: Sandbox): Promise<boolean> {
  return (await sandbox.why()).alive.every((reason) => !reason.includes("not connected"));
}

/** What became of each generation, in order. */
function story(events: readonly SandboxEvent[]): string[] {
  return events
    .filter(({ type }) => ["created", "launching", "live", "gone", "deleted"].includes(type))
    .map(({ type, cause, detail }) =>
      [type, detail.generation, cause].filter((fact) => fact !== undefined).join(" "),
    );
}

function wholeStory(deaths: readonly string[]): string[] {
  const generations = deaths.flatMap((cause, i) => [
    `launching ${i + 1}`,
    `live ${i + 1}`,
    `gone ${i + 1} ${cause}`,
  ]);
  return ["created", ...generations, "deleted delete_requested"];
}

function codeOf(error: unknown): unknown {
  return error instanceof HoldfastError ? error.code : error;
}

withTwo("an address that is taken back on one server is cut on the other, too", async ({ a, b }) => {
  const onA = await Sandbox.create({ name: "shown" }, a.at);
  await onA.exec("cat > app.mjs", { stdin: readFileSync(join(import.meta.dir, "preview-app.mjs"), "utf8") });
  await (await onA.startProcess(["node", "app.mjs"])).waitForLog("ready");
  const { host, port } = new URL((await onA.ports.expose(3000)).url);
  const visitor = await RawClient.open(Number(port));
  visitor.say(`GET /s HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await visitor.until("\r\n\r\n");
  await visitor.say("here").until("here");
  await (await Sandbox.get("shown", b.at)).ports.close(3000);
  expect(await visitor.rest()).toBe("");
  visitor.close();
});
