import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox, Snapshot } from "holdfast";
import { TestServer } from "./harness.ts";

const missing = missingDocker();
const onDocker = missing === undefined ? test : test.skip;
let daemon: DockerDaemon;
let server: TestServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  daemon = await startDockerDaemon();
  server = await TestServer.start({
    args: ["--providers", "local,docker", "--docker-image", daemon.images.debian],
    env: { DOCKER_HOST: daemon.host },
  });
}, 120_000);

afterAll(async () => {
  await server?.dispose();
  await daemon?.stop();
}, 120_000);

const TREE = `cd /workspace && mkdir -p deep/er 'with space' && echo hi > deep/er/file && : > empty && echo 1 > one && ln one two
printf y > "$(printf '\\377\\n')" && ln -s /etc/passwd link && truncate -s 3M hole && echo end >> hole && mkfifo pipe
echo s > run.sh && chmod 4711 run.sh && mkdir locked && echo in > locked/in && chmod 500 locked && echo home > ~/note
mkdir ${"n".repeat(150)} && echo long > ${"n".repeat(150)}/${"m".repeat(150)}; touch -d '2001-02-03 04:05:06' deep`;

async function layers(): Promise<string[]> {
  const images = (await daemon.ask("GET", "/images/json")) as { RepoTags: string[] | null }[];
  return images.flatMap(({ RepoTags }) => RepoTags ?? []).filter((name) => name.startsWith("holdfast/"));
}

async function moved(snapshot: Snapshot, provider: string): Promise<Snapshot> {
  return Snapshot.import(await snapshot.export(), { ...server.at, provider });
}

onDocker(
  "local to Docker and back: equal trees, by checksum; a fork in Docker; nothing is left paused or behind",
  async () => {
    const here = await Sandbox.create({ name: "here", network: "none" }, server.at);
    expect((await here.exec(TREE)).stderr).toBe("");
    const first = await here.snapshot({ name: "first" });
    const inDocker = await moved(first, "docker");
    expect(inDocker.info).toMatchObject({ provider: "docker", checksum: first.info.checksum });

    await expect(
      Sandbox.create({ fromSnapshot: "first", provider: "docker" }, server.at),
    ).rejects.toMatchObject({ code: "invalid_argument" });
    const there = await Sandbox.create(
      { name: "there", fromSnapshot: inDocker.id, network: "none" },
      server.at,
    );
    expect(there.info).toMatchObject({ provider: "docker", continuity: "restored" });
    expect(
      (await there.exec("cat ~/note; stat -c '%u %a' /workspace/run.sh; cat /workspace/two")).stdout,
    ).toBe("home\n1000 4711\n1\n");
    const second = await there.snapshot({ name: "second" });
    expect(second.info.checksum).toBe(first.info.checksum as string);
    expect((await there.exec("echo awake")).stdout).toBe("awake\n");
    const back = await moved(second, "local");
    const again = await Sandbox.create({ fromSnapshot: back.id, network: "none" }, server.at);
    expect((await again.snapshot()).info.checksum).toBe(first.info.checksum as string);

    // The server dies while the container is paused for a copy.
    await there.exec("head -c 100M /dev/urandom > ~/big");
    const dying = server
      .fetch("/v1/sandboxes/there/snapshots", { method: "POST", body: "{}" })
      .catch(() => undefined);
    const paused = new Bun.Glob("docker/snapshots/.new-*/paused");
    while ([...paused.scanSync({ cwd: server.dataDir, dot: true })].length === 0) await Bun.sleep(1);
    await server.restart("SIGKILL");
    await dying;
    expect(await there.exec("rm ~/big; echo awake", { ifGeneration: 1 })).toMatchObject({
      stdout: "awake\n",
    });
    while ((await there.snapshots()).some(({ info }) => info.state === "making")) await Bun.sleep(20);
    expect([...paused.scanSync({ cwd: server.dataDir, dot: true })]).toEqual([]);

    await there.exec("echo parent > ~/note");
    await there.stop();
    const forks = await there.fork(2);
    await forks[0]?.exec("echo fork > ~/note");
    const notes = await Promise.all([there, ...forks].map((one) => one.exec("cat ~/note")));
    expect(notes.map(({ stdout }) => stdout)).toEqual(["parent\n", "fork\n", "parent\n"]);

    // What was installed outside of the volumes, as root: in forks, and from what was killed while it was taken.
    const rooted = await Sandbox.create(
      { name: "rooted", provider: "docker", user: "root", network: "none" },
      server.at,
    );
    await rooted.exec("mkdir /opt; head -c 60M /dev/urandom > /opt/big; echo tool > /opt/tool");
    const cut = server
      .fetch("/v1/sandboxes/rooted/snapshots", { method: "POST", body: "{}" })
      .catch(() => undefined);
    const isPaused = encodeURIComponent(JSON.stringify({ status: ["paused"] }));
    while (((await daemon.ask("GET", `/containers/json?filters=${isPaused}`)) as []).length === 0);
    await server.restart("SIGKILL");
    await cut;
    expect((await rooted.exec("rm /opt/big; cat /opt/tool", { ifGeneration: 1 })).stdout).toBe("tool\n");
    while ((await layers()).length > 0) await Bun.sleep(50);
    const [twin] = await rooted.fork(1);
    expect((await twin?.exec("cat /opt/tool"))?.stdout).toBe("tool\n");
    const installed = await rooted.snapshot({ name: "installed" });
    expect(installed.info.parts[2]).toMatchObject({
      name: "layer",
      image: expect.stringMatching(/^sha256:/),
    });
    const other = { fromSnapshot: "installed", image: daemon.images.busybox };
    await expect(Sandbox.create(other, server.at)).rejects.toMatchObject({ code: "invalid_argument" });
    const elsewhere = await moved(installed, "local");
    expect(elsewhere.info).toMatchObject({
      checksum: installed.info.checksum,
      parts: [{}, {}, { leftOut: true }],
    });
    const without = await Sandbox.create({ fromSnapshot: elsewhere.id, network: "none" }, server.at);
    expect(without.info).toMatchObject({ continuity: "restored", losses: ["the container's own files"] });
    for (const one of await Snapshot.list(server.at)) await one.delete();

    await server.deleteAll();
    expect(await layers()).toEqual([]);
    const { Volumes } = (await daemon.ask("GET", "/volumes")) as { Volumes: unknown[] | null };
    expect([await daemon.ask("GET", "/containers/json?all=true"), Volumes ?? []]).toEqual([[], []]);
  },
  120_000,
);
