import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { HoldfastError, type LeaseInfo, Operator, Sandbox } from "holdfast";
import { missingPostgres, type Postgres, startPostgres } from "../packages/testkit/src/postgres.ts";
import { leftovers } from "./crash-world.ts";
import { hostProcesses, TestServer } from "./harness.ts";

const spares = { HOLDFAST_SPARES: "1" };

function withServer(title: string, work: (server: TestServer) => Promise<void>): void {
  const titled = async () => {
    const server = await TestServer.start({ env: spares });
    try {
      await work(server);
    } finally {
      await server.dispose();
    }
  };
  test(title, titled, 120_000);
}

async function leasesOf(server: TestServer): Promise<LeaseInfo[]> {
  return Array.fromAsync((await Operator.connect(server.at)).leases());
}

/** The one that waits, once it does. */
async function spareOf(server: TestServer): Promise<LeaseInfo> {
  for (;;) {
    const found = (await leasesOf(server)).find(({ spare, phase }) => spare === true && phase === "live");
    if (found !== undefined) return found;
    await Bun.sleep(10);
  }
}

const gone = async (server: TestServer, { sandboxId }: LeaseInfo) => {
  while ((await leasesOf(server)).some((lease) => lease.sandboxId === sandboxId)) await Bun.sleep(20);
};
const create = (server: TestServer, options: Parameters<typeof Sandbox.create>[0] = {}) =>
  Sandbox.create({ network: "none", ...options }, server.at);

withServer("what was a spare is a sandbox like any other, and until then it is none", async (server) => {
  const first = await create(server);
  const spare = await spareOf(server);
  expect((await Sandbox.list(server.at)).map(({ id }) => id)).toEqual([first.id]);
  const missing = await Sandbox.get(spare.sandboxId, server.at).catch((error: unknown) => error);
  expect(missing instanceof HoldfastError && missing.code).toBe("not_found");

  const env = { GREETING: "hello", PATH: "/usr/bin:/bin:/mine" };
  const sandbox = await create(server, { env, labels: { for: "me" }, persistent: false });
  expect(sandbox.id).toBe(spare.sandboxId);
  expect(sandbox.info).toMatchObject({
    ...{ name: sandbox.id, generation: 1, continuity: "fresh", labels: { for: "me" }, persistent: false },
    spec: { network: "none", env },
  });
  const script = "echo $GREETING $PATH; hostname; ls -A /workspace; id -un";
  const { stdout } = await sandbox.exec(script);
  expect(stdout).toBe(`hello ${env.PATH}\n${sandbox.id}\nuser\n`);
  const session = await sandbox.createSession();
  expect((await session.exec("echo $GREETING")).stdout).toBe("hello\n");
  expect((await sandbox.why()).idleForSeconds ?? 0).toBeLessThan(5);
  const turn = await sandbox.beginTurn();
  await turn.end();
  await gone(server, spare);
  const events = await Sandbox.events(sandbox.id, server.at);
  expect(events.map(({ type }) => type).slice(0, 4)).toEqual(["prepared", "launching", "live", "created"]);
});

withServer("kill -9 of the server: the next one finds the spare, and gives it away", async (server) => {
  await create(server);
  const spare = await spareOf(server);
  await server.restart("SIGKILL");
  expect((await spareOf(server)).instanceId).toBe(spare.instanceId);
  const sandbox = await create(server, { env: { A: "1" } });
  expect([sandbox.id, (await sandbox.exec("echo $A")).stdout]).toEqual([spare.sandboxId, "1\n"]);
});

withServer(
  "its keeper is killed: the next create gets a new one, and nothing is left of it",
  async (server) => {
    const first = await create(server);
    const spare = await spareOf(server);
    for (const line of await hostProcesses(`hf-${spare.sandboxId}-g1`)) {
      try {
        process.kill(Number.parseInt(line, 10), "SIGKILL");
      } catch {
        // It went with one of the others.
      }
    }
    const sandbox = await create(server);
    expect([(await sandbox.exec("echo hi")).stdout, sandbox.info.generation]).toEqual(["hi\n", 1]);
    await gone(server, spare);
    await spareOf(server);
    await Promise.all([first.delete(), sandbox.delete()]);
  },
);

withServer("a server that is ended in order leaves nothing that nobody asked for", async (server) => {
  const sandbox = await create(server);
  await spareOf(server);
  await server.signal("SIGTERM");
  expect(leftovers(server, [sandbox.id])).toEqual([]);
  await server.boot();
  expect((await leasesOf(server)).map(({ sandboxId }) => sandboxId)).toEqual([sandbox.id]);
});

const missingDatabase = missingPostgres();
test.skipIf(missingDatabase !== undefined)(
  "two servers on one database: of creates on both nobody gets what another has",
  async () => {
    const postgres: Postgres = await startPostgres();
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-shared-"));
    const args = ["--database", await postgres.newDatabase()];
    const a = await TestServer.start({ dataDir, args, env: spares });
    const b = await TestServer.start({ dataDir, args, env: spares });
    try {
      const seen = new Set((await Promise.all([create(a), create(b)])).map(({ id }) => id));
      let given = 0;
      for (let round = 1; round <= 4; round++) {
        const spare = await spareOf(a);
        const made = await Promise.all([a, b, a, b].map((server) => create(server)));
        for (const { id } of made) seen.add(id);
        expect(seen.size).toBe(2 + 4 * round);
        given += made.filter(({ id }) => id === spare.sandboxId).length;
        const answers = await Promise.all(made.map((sandbox) => sandbox.exec("echo $HOLDFAST_SANDBOX_ID")));
        expect(answers.map(({ stdout }) => stdout.trim())).toEqual(made.map(({ id }) => id));
      }
      expect(given).toBeGreaterThan(0);
    } finally {
      await a.signal("SIGTERM");
      await b.dispose();
      await postgres.stop();
    }
  },
  240_000,
);

const missing = missingDocker();
let daemon: DockerDaemon;
beforeAll(async () => {
  if (missing === undefined) daemon = await startDockerDaemon();
}, 120_000);
afterAll(() => daemon?.stop(), 120_000);

test.skipIf(missing !== undefined)(
  "in Docker: one of the same image, and another image has its own",
  async () => {
    const { debian, busybox } = daemon.images;
    const server = await TestServer.start({
      args: ["--providers", "docker", "--docker-image", debian],
      env: { ...spares, DOCKER_HOST: daemon.host },
    });
    try {
      await create(server);
      const spare = await spareOf(server);
      const other = await create(server, { image: busybox });
      expect(other.id).not.toBe(spare.sandboxId);
      await gone(server, spare);
      const next = await spareOf(server);
      const sandbox = await create(server, { image: busybox, env: { A: "1" } });
      expect(sandbox.id).toBe(next.sandboxId);
      const { stdout } = await sandbox.exec(
        "echo $A; hostname; ls -A /workspace; test -e /bin/busybox && echo busybox",
      );
      expect(stdout).toBe(`1\n${sandbox.id}\nbusybox\n`);
      // What it has is its own: it is there after a stop, in a container like the first.
      await sandbox.exec("echo kept > /workspace/file");
      await sandbox.stop();
      expect((await sandbox.exec("cat /workspace/file; echo $A")).stdout).toBe("kept\n1\n");
      expect((await sandbox.refresh()).generation).toBe(2);
    } finally {
      await server.dispose();
    }
    const left = (await daemon.ask("GET", "/containers/json?all=1")) as { Names: string[] }[];
    expect(left.map(({ Names }) => Names)).toEqual([]);
  },
  240_000,
);
