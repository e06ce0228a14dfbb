import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Client, Sandbox, Snapshot } from "holdfast";
import { holdfastBin, run, TestServer } from "./harness.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.dispose());

/** Everything in the user's files that a copy must keep: names, links, modes, times, contents, holes. */
const FINGERPRINT = `cd / && find workspace home/user -printf '%p %y %m %s %l %Ts\\n' | sort | sha256sum
cd / && find workspace home/user -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
stat -c %b /workspace/hole; stat -c %h /workspace/one`;

const ODD_TREE = `cd /workspace && mkdir -p deep/er 'with space' && echo hi > deep/er/file && : > empty
printf x > "$(printf 'new\\nline')" && printf y > "$(printf '\\377\\376')" && echo 1 > one && ln one two
ln -s /etc/passwd link && ln -s nowhere dangling && mkfifo pipe && truncate -s 50M hole && echo end >> hole
echo s > run.sh && chmod 4711 run.sh && chmod 000 empty && mkdir locked && echo in > locked/in && chmod 500 locked
touch -d '2001-02-03 04:05:06' deep && echo home > ~/note`;

async function print(sandbox: Sandbox): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(FINGERPRINT);
  expect(stderr.replaceAll(/.*Permission denied\n/g, "")).toBe("");
  return stdout;
}

test("a snapshot of a running sandbox is of one moment, and a sandbox made from it has the same tree", async () => {
  const parent = await Sandbox.create({ name: "parent", network: "none" }, server.at);
  await parent.exec(ODD_TREE);
  // Two files in two parts of the disk, equal but for the moment between two writes.
  const writer = await parent.startProcess(
    "for ((i = 1; ; i++)); do printf %09d $i 1<>/workspace/a; printf %09d $i 1<>~/b; done",
  );
  while ((await parent.exec("cat ~/b")).stdout === "") await Bun.sleep(10);
  const taken = await parent.snapshot({ name: "odd", labels: { kind: "test" } });
  expect(taken.info).toMatchObject({
    state: "ready",
    origin: "request",
    generation: 1,
    sandboxId: parent.id,
    checksum: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    parts: [{ name: "workspace" }, { name: "home" }],
  });
  expect(taken.info.sizeBytes).toBeGreaterThan(50 * 1024 ** 2);
  // It runs on.
  const before = Number((await parent.exec("cat ~/b")).stdout);
  while (Number((await parent.exec("cat ~/b")).stdout) <= before) await Bun.sleep(10);
  await writer.kill();

  const copy = await Sandbox.create({ fromSnapshot: "odd", network: "none" }, server.at);
  expect(copy.continuity).toBe("restored");
  const { stdout } = await copy.exec(
    "cat /workspace/a; echo; cat ~/b; echo; stat -c %u /workspace/* | sort -u",
  );
  const [a = "", b = "", owners] = stdout.split("\n");
  expect([0, 1]).toContain(Number(a) - Number(b));
  expect(owners).toBe("1000");
  await parent.exec("rm /workspace/a ~/b");
  await copy.exec("rm /workspace/a ~/b; touch -r /workspace/deep /workspace ~");
  await parent.exec("touch -r /workspace/deep /workspace ~");
  expect(await print(copy)).toBe(await print(parent));
  expect((await copy.exec("cat /workspace/hole | tail -c4; stat -c %b /workspace/hole")).stdout).toMatch(
    /^end\n\d{1,3}\n/,
  );

  const file = join(server.dataDir, "odd.tar");
  const env = { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  expect(await run([holdfastBin, "export", "odd", "-f", file], { env })).toMatchObject({ exitCode: 0 });
  expect(await run([holdfastBin, "import", file, "--name", "odd-again"], { env })).toMatchObject({
    exitCode: 0,
    stdout: "odd-again\n",
  });
  const imported = await Snapshot.get("odd-again", server.at);
  expect(imported.info).toMatchObject({
    origin: "import",
    checksum: taken.info.checksum,
    parts: taken.info.parts,
  });
  const third = await Sandbox.create({ fromSnapshot: "odd-again", network: "none" }, server.at);
  // Pipes do not travel.
  await third.exec("rm /workspace/a ~/b; touch -r /workspace/deep /workspace ~");
  await copy.exec("rm /workspace/pipe; touch -r /workspace/deep /workspace ~");
  expect(await print(third)).toBe(await print(copy));
  await imported.delete();

  const again = await parent.stop().then(() => parent.snapshot({ name: "stopped" }));
  expect((await parent.refresh()).state).toBe("stopped");
  expect((await Snapshot.list(server.at)).map(({ name }) => name)).toEqual(["odd", "stopped"]);
  expect((await Snapshot.list({ ...server.at, label: "kind=test" })).map(({ name }) => name)).toEqual([
    "odd",
  ]);
  await expect(parent.snapshot({ name: "odd" })).rejects.toMatchObject({ code: "already_exists" });
  await again.delete();
  await again.delete();
  expect((await parent.snapshots()).map(({ name }) => name)).toEqual(["odd"]);
});

test("ten forks have the parent's files, are each on their own, and leave no copy behind", async () => {
  const parent = await Sandbox.create({ name: "root", network: "none", labels: { team: "web" } }, server.at);
  await parent.exec("echo parent > /workspace/who; echo home > ~/who");
  const forks = await parent.fork(10, { name: "child", labels: { n: "10" }, lifetimeSeconds: 77 });
  expect(forks.map(({ name }) => name)).toEqual(Array.from({ length: 10 }, (_, i) => `child-${i + 1}`));
  expect(forks[0]?.info).toMatchObject({
    labels: { team: "web", n: "10" },
    lifetimeSeconds: 77,
    state: "running",
  });
  await Promise.all(forks.map((one) => one.exec(`echo ${one.name} > /workspace/who`)));
  const said = await Promise.all([parent, ...forks].map((one) => one.exec("cat /workspace/who ~/who")));
  expect(said.map(({ stdout }) => stdout)).toEqual(
    ["parent", ...forks.map(({ name }) => name)].map((name) => `${name}\nhome\n`),
  );
  expect((await Snapshot.list(server.at)).filter(({ info }) => info.origin === "fork")).toEqual([]);
  await Promise.all(forks.map((one) => one.delete({ force: true })));
});

test("a snapshot goes by itself when its time is over, and by name at once; a sandbox from none is refused", async () => {
  const sandbox = await Sandbox.create({ name: "short", network: "none" }, server.at);
  const brief = await sandbox.snapshot({ name: "brief", expiresInSeconds: 1 });
  expect(brief.info.expiresAt).toBeDefined();
  await expect(Sandbox.create({ fromSnapshot: "none" }, server.at)).rejects.toMatchObject({
    code: "not_found",
  });
  await Bun.sleep(1_000);
  await server.restart("SIGTERM");
  while ((await Snapshot.list(server.at)).some(({ name }) => name === "brief")) await Bun.sleep(50);
  expect(existsSync(join(server.dataDir, "snapshots", brief.id))).toBe(false);
});

test("kill -9 of the server in the middle of a snapshot and of a restore: nothing half made stays, and nothing stands still", async () => {
  const sandbox = await Sandbox.create({ name: "heavy", network: "none" }, server.at);
  const { stdout: sum } = await sandbox.exec(
    "head -c 200M /dev/urandom > /workspace/big && sha256sum < /workspace/big",
  );
  const dying = server
    .fetch("/v1/sandboxes/heavy/snapshots", { method: "POST", body: '{"name":"cut"}' })
    .catch(() => undefined);
  await draftIn("snapshots");
  await server.signal("SIGKILL");
  await dying;
  await server.boot();
  expect(await sandbox.exec("echo awake", { ifGeneration: 1 })).toMatchObject({ stdout: "awake\n" });
  let cut = await Snapshot.get("cut", server.at);
  while (cut.info.state === "making") cut = await cut.refresh();
  expect(cut.info).toMatchObject({ state: "failed", failure: expect.stringContaining("the server ended") });
  expect(left("snapshots")).not.toContain(cut.id);

  // The name of one that failed is free. Its record is lost, as after a restored backup, and found again.
  const whole = await sandbox.snapshot({ name: "cut" });
  await server.signal("SIGKILL");
  const db = new Database(join(server.dataDir, "holdfast.db"));
  db.run("DELETE FROM snapshot WHERE name = 'cut'");
  db.close();
  for (const dir of ["snapshots/.new-snaplost", "sandboxes/.new-sbxlost"])
    mkdirSync(join(server.dataDir, dir));
  await server.boot();
  while (!(await Snapshot.list(server.at)).some(({ id }) => id === whole.id)) await Bun.sleep(50);
  expect((await whole.refresh()).info).toMatchObject({
    name: "cut",
    state: "ready",
    checksum: whole.info.checksum,
  });

  const client = await Client.connect(server.at);
  await Snapshot.get("cut", { client });
  const once = { client, idempotencyKey: "once" };
  const restoring = Sandbox.create({ fromSnapshot: "cut", network: "none" }, once);
  await draftIn("sandboxes");
  expect((await server.fetch("/v1/snapshots/cut", { method: "DELETE" })).status).toBe(202);
  await server.restart("SIGKILL");
  const restored = await restoring;
  expect((await restored.exec("sha256sum < /workspace/big")).stdout).toBe(sum);
  while ((await Snapshot.list(server.at)).some(({ name }) => name === "cut")) await Bun.sleep(50);
  // The same call again gives the same sandbox, though what it was made from is gone.
  expect((await Sandbox.create({ fromSnapshot: "cut", network: "none" }, once)).id).toBe(restored.id);
  expect([...left("snapshots"), ...left("sandboxes")].filter((name) => name.startsWith("."))).toEqual([]);
});

function left(dir: string): string[] {
  return readdirSync(join(server.dataDir, dir));
}

/** A copy is under way there. */
async function draftIn(dir: string): Promise<void> {
  while (!left(dir).some((name) => name.startsWith(".new-"))) await Bun.sleep(1);
}
