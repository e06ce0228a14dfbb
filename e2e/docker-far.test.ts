import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

const missing = missingDocker();
const onDocker = missing === undefined ? test : test.skip;
let daemon: DockerDaemon;
let server: TestServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  const dataDir = mkdtempSync(join(tmpdir(), "holdfast-e2e-"));
  daemon = await startDockerDaemon({ remote: { hidden: [dataDir] } });
  server = await TestServer.start({
    dataDir,
    args: ["--providers", "docker", "--docker-image", daemon.images.debian],
    env: {
      DOCKER_HOST: daemon.remote?.host ?? "",
      DOCKER_TLS_VERIFY: "1",
      DOCKER_CERT_PATH: daemon.remote?.certPath ?? "",
    },
  });
}, 120_000);

afterAll(async () => {
  await server?.dispose();
  await daemon?.stop();
}, 120_000);

onDocker(
  "a sandbox on another machine, reached by its daemon alone, works, survives its server, and leaves nothing",
  async () => {
    const sandbox = await Sandbox.create({ name: "far", network: "none" }, server.at);
    // Much in both directions, and what the work must not see.
    const bytes = new Uint8Array(3_000_000).map((_, i) => (i * 7919) % 251);
    const echoed = await sandbox.exec("cat", { stdin: bytes, encoding: "base64", maxOutputBytes: 4_000_000 });
    expect(Buffer.compare(Buffer.from(echoed.stdout, "base64"), bytes)).toBe(0);
    const look = `ls /.holdfast/state/boot.json /.holdfast/run; touch /.holdfast/bin/x
      for p in /proc/[0-9]*; do
        grep -q "rela[y]" $p/cmdline && seen=yes && ls $p/fd $p/map_files && echo open
      done; echo $seen`;
    expect((await sandbox.exec(look)).stdout).toBe("yes\n");
    const loop = await sandbox.startProcess("while sleep 0.2; do echo on; done");
    await server.restart("SIGKILL");
    const again = await Sandbox.get("far", server.at);
    expect((await (await again.getProcess(loop.processId)).info()).status).toEqual({ state: "running" });
    expect((await again.exec("echo same", { ifGeneration: 1 })).stdout).toBe("same\n");
    await again.delete({ force: true });
    const left = (await daemon.ask("GET", "/containers/json?all=true")) as unknown[];
    const { Volumes } = (await daemon.ask("GET", "/volumes")) as { Volumes: { Name: string }[] | null };
    // The keeper's program stays, for the sandboxes to come.
    const names = (Volumes ?? []).map(({ Name }) => Name.replace(/-[0-9a-f]{16}$/, ""));
    expect([left, names]).toEqual([[], ["hf-keeper"]]);
  },
  120_000,
);

onDocker(
  "files, watch, sync, previews and forks are the same there",
  async () => {
    const { busybox: image } = daemon.images;
    const sandbox = await Sandbox.create({ name: "far-work", image, network: "none" }, server.at);
    const watch = sandbox.watch("/workspace");
    expect((await watch.next()).value).toMatchObject({ type: "ready" });
    const local = mkdtempSync(join(tmpdir(), "holdfast-far-"));
    try {
      const large = Buffer.alloc(20_000_000, "far");
      writeFileSync(join(local, "large"), large);
      writeFileSync(join(local, "index.html"), "hello from afar\n");
      const stateFile = `${local}.json`;
      const up = await sandbox.files.sync(local, "/workspace/app", { stateFile });
      expect(up.uploaded).toEqual(["index.html", "large"]);
      for await (const event of watch) if ("path" in event && event.path === "/workspace/app/large") break;
      expect(Buffer.compare(await sandbox.files.read("/workspace/app/large"), large)).toBe(0);
      await sandbox.exec("cd app && rm large && echo new > new");
      const both = await sandbox.files.sync(local, "/workspace/app", {
        ...{ stateFile, direction: "both", delete: true },
      });
      expect(both).toMatchObject({ downloaded: ["new"], deletedLocal: ["large"], unchanged: 1 });
      expect(readFileSync(join(local, "new"), "utf8")).toBe("new\n");
    } finally {
      for (const path of [local, `${local}.json`]) rmSync(path, { recursive: true, force: true });
    }
    const web = await sandbox.startProcess(["httpd", "-f", "-p", "127.0.0.1:3000"], {
      cwd: "/workspace/app",
    });
    await web.waitForPort(3000);
    const { host, port } = new URL((await sandbox.ports.expose(3000)).url);
    const page = await fetch(`http://127.0.0.1:${port}/`, { headers: { Host: host } });
    expect(await page.text()).toBe("hello from afar\n");
    const [twin] = await sandbox.fork(1);
    await sandbox.exec("echo changed > app/new");
    expect(await twin?.files.readText("/workspace/app/new")).toBe("new\n");
    await Promise.all([sandbox, twin].map((one) => one?.delete({ force: true })));
  },
  120_000,
);
