import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { holdfastBin, hostProcesses, keeperPid, root, run, TestServer } from "./harness.ts";

/** The last one whose rows and whose keepers knew of no lifetimes, turns and tickets. */
const PREVIOUS = "701ac68";
const hasPrevious = (await run(["git", "cat-file", "-e", `${PREVIOUS}^{commit}`])).exitCode === 0;

/** History is no engine that a script could install: a clone without it (`--depth 1`) is told what it cannot run. */
const withPrevious = hasPrevious
  ? test
  : (name: string, _work: () => Promise<void>, _ms: number) =>
      void process.stdout.write(`not run, because this clone has no ${PREVIOUS}: ${name}\n`);

let clone: string;
beforeAll(async () => {
  if (hasPrevious) clone = await checkOut(PREVIOUS);
});
afterAll(() => {
  if (hasPrevious) rmSync(clone, { recursive: true, force: true });
});

withPrevious(
  "scenario 56: what the release before made runs on under this one, and can be stopped, started and deleted",
  async () => {
    const command = [join(clone, "packages/cli/bin/holdfast"), "serve"];
    const before = await TestServer.start({ command });
    const running = await Sandbox.create({ name: "running" }, before.at);
    const stopped = await Sandbox.create({ name: "stopped" }, before.at);
    await stopped.exec("echo kept > /workspace/file");
    await stopped.stop();
    const background = await running.startProcess("echo started; sleep 1000");
    const shell = await running.createSession({ sessionId: "main" });
    await shell.exec("cd /tmp && export FROM=before");
    const keeper = await keeperPid(running);
    await before.signal("SIGKILL");

    const after = await TestServer.start({ dataDir: before.dataDir });
    try {
      const same = await Sandbox.get("running", after.at);
      expect(same.info).toMatchObject({ state: "running", generation: 1, lifetimeSeconds: 1800 });
      expect(await keeperPid(same)).toBe(keeper);
      expect(await (await same.getSession("main")).exec("echo $FROM $PWD")).toMatchObject({
        stdout: "before /tmp\n",
        generation: 1,
      });
      expect(await (await same.getProcess(background.processId)).info()).toMatchObject({
        pid: background.pid,
        status: { state: "running" },
      });
      const turn = await same.beginTurn();
      expect(await same.exec("echo in a turn")).toMatchObject({ stdout: "in a turn\n" });
      await turn.end();

      // Its keeper knows of no ports: whoever visits is told so, and the address is good for the next one.
      const { host, port } = new URL((await same.ports.expose(3000)).url);
      const visit = await fetch(`http://127.0.0.1:${port}/`, { headers: { Host: host } });
      expect([visit.status, await visit.text()]).toEqual([501, expect.stringContaining("is older than")]);

      // Its keeper cannot say whether it is idle: it goes on, and is not asked again and again.
      await same.update({ lifetimeSeconds: 1 });
      await Bun.sleep(3_500);
      const adoptions = (await same.events()).filter(({ type }) => type === "adopted");
      expect({ state: (await same.refresh()).state, adoptions: adoptions.length }).toEqual({
        state: "running",
        adoptions: 2,
      });

      await same.stop();
      expect(await hostProcesses(same.id)).toEqual([]);
      expect(await same.exec("echo new keeper")).toMatchObject({ stdout: "new keeper\n", generation: 2 });
      await same.touch();
      const back = await Sandbox.get("stopped", after.at);
      expect(await back.exec("cat /workspace/file")).toMatchObject({ stdout: "kept\n", generation: 2 });
      await Promise.all([same.delete(), back.delete()]);
      expect(readdirSync(join(after.dataDir, "instances"))).toEqual([]);
    } finally {
      await after.dispose();
    }
  },
  120_000,
);

withPrevious(
  "scenario 56: the release before refuses the rows of this one, and changes nothing",
  async () => {
    const server = await TestServer.start();
    try {
      const sandbox = await Sandbox.create({}, server.at);
      await server.signal("SIGTERM");
      const place = ["--port", "0", "--data-dir", server.dataDir];
      const refused = await run([join(clone, "packages/cli/bin/holdfast"), "serve", ...place]);
      expect(refused.exitCode).not.toBe(0);
      expect(refused.stderr).toContain("newer");
      await server.boot();
      expect(await sandbox.exec("echo here")).toMatchObject({ stdout: "here\n", generation: 1 });
    } finally {
      await server.dispose();
    }
  },
  120_000,
);

test("scenario 56: rows of a version that is not known here are refused, and nothing is touched", async () => {
  const server = await TestServer.start();
  try {
    const sandbox = await Sandbox.create({}, server.at);
    const keeper = await keeperPid(sandbox);
    await server.signal("SIGTERM");
    const version = schemaVersion(server.dataDir, (known) => known + 1);
    const refused = await run([holdfastBin, "serve", "--port", "0", "--data-dir", server.dataDir]);
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(refused.stderr).toContain("hint:");
    schemaVersion(server.dataDir, () => version);
    await server.boot();
    expect(await keeperPid(sandbox)).toBe(keeper);
  } finally {
    await server.dispose();
  }
});

/** Sets it, and says what it was. */
function schemaVersion(dataDir: string, change: (version: number) => number): number {
  const db = new Database(join(dataDir, "holdfast.db"));
  try {
    const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
    const version = row?.user_version ?? 0;
    db.run(`PRAGMA user_version = ${change(version)}`);
    return version;
  } finally {
    db.close();
  }
}

/** That release's own code with its own keeper; what npm installs is this clone's. */
async function checkOut(commit: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-release-"));
  await run(["sh", "-c", `git archive ${commit} | tar -x -C ${folder}`]);
  linkModules(folder);
  const built = await run([join(root, "node_modules/.bin/bun"), join(folder, "scripts/build-keeper.ts")]);
  if (built.exitCode !== 0) throw new Error(`the keeper of ${commit} was not built: ${built.stderr}`);
  return folder;
}

/** Everything but its own packages, which npm would link to itself. */
function linkModules(folder: string): void {
  const [from, to] = [join(root, "node_modules"), join(folder, "node_modules")];
  mkdirSync(join(to, "@holdfast"), { recursive: true });
  for (const name of readdirSync(from)) {
    if (name !== "@holdfast" && name !== "holdfast") symlinkSync(join(from, name), join(to, name));
  }
  for (const name of readdirSync(join(folder, "packages"))) {
    symlinkSync(join(folder, "packages", name), join(to, name === "sdk" ? "holdfast" : `@holdfast/${name}`));
  }
}
