import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

const missing = missingDocker();
const onDocker = missing === undefined ? test : test.skip;
let daemon: DockerDaemon;
let server: TestServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  daemon = await startDockerDaemon();
  server = await TestServer.start({
    args: ["--providers", "docker,local", "--docker-image", daemon.images.debian],
    env: { DOCKER_HOST: daemon.host },
  });
});

afterAll(async () => {
  await server?.dispose();
  await daemon?.stop();
});

onDocker(
  "a sandbox in Docker survives its server, and comes back on its volumes after a stop",
  async () => {
    const sandbox = await Sandbox.create({ name: "boxed" }, server.at);
    expect(sandbox.info.provider).toBe("docker");
    await sandbox.exec("echo kept > /workspace/note; echo gone > /tmp/note");
    const loop = await sandbox.startProcess("while sleep 0.2; do date; done");
    await server.restart("SIGKILL");
    const again = await Sandbox.get("boxed", server.at);
    const { stdout } = await again.exec("cat /workspace/note /tmp/note", { ifGeneration: 1 });
    expect(stdout).toBe("kept\ngone\n");
    expect((await (await again.getProcess(loop.processId)).info()).status).toEqual({ state: "running" });
    await again.stop();
    expect((await again.exec("cat /workspace/note; ls /tmp")).stdout).toBe("kept\n");
    expect((await Sandbox.get("boxed", server.at)).info).toMatchObject({
      generation: 2,
      continuity: "same-filesystem",
    });
    await again.delete();
    const left = (await daemon.ask("GET", "/containers/json?all=true")) as unknown[];
    const { Volumes } = (await daemon.ask("GET", "/volumes")) as { Volumes: unknown[] | null };
    expect([left, Volumes ?? []]).toEqual([[], []]);
  },
  120_000,
);

onDocker(
  "a program on localhost in a container is reached through its preview, without any network",
  async () => {
    const sandbox = await Sandbox.create({ image: daemon.images.busybox, network: "none" }, server.at);
    await sandbox.exec("echo hello from a container > index.html");
    const web = await sandbox.startProcess(["httpd", "-f", "-p", "127.0.0.1:3000"]);
    await web.waitForPort(3000);
    const { url } = await sandbox.ports.expose(3000);
    expect(await sandbox.ports.list()).toMatchObject([{ port: 3000, url, listening: true }]);
    const { host, port } = new URL(url);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { Host: host } });
    expect(await answer.text()).toBe("hello from a container\n");
    await sandbox.delete();
  },
  120_000,
);

onDocker(
  "files, archives and uploads are the same in a container",
  async () => {
    const sandbox = await Sandbox.create({ name: "boxed-files" }, server.at);
    const { files } = sandbox;
    await files.write("/workspace/a/run.sh", "#!/bin/sh\necho ran\n", { parents: true, mode: 0o755 });
    expect((await sandbox.exec(["/workspace/a/run.sh"])).stdout).toBe("ran\n");
    expect(await files.write("/etc/passwd", "x").catch((error) => error.code)).toBe("forbidden");
    await files.writeTar("/home/user/copy", await files.readTar("/workspace/a"));
    const facts = async (top: string) =>
      (await Array.fromAsync(files.list(top, { hash: "sha256" }))).map(
        ({ name, type, mode, links, target, sha256 }) => [name, type, mode, links, target, sha256],
      );
    expect(await facts("/home/user/copy")).toEqual(await facts("/workspace/a"));
    const content = new Blob([new Uint8Array(20_000_000).fill(7)]);
    await files.upload("/workspace/big", content);
    expect((await files.stat("/workspace/big")).sizeBytes).toBe(content.size);
    expect((await Array.fromAsync(files.list("/workspace", { depth: 2 }))).map(({ name }) => name)).toEqual([
      "a",
      "run.sh",
      "big",
    ]);
    await sandbox.delete();
  },
  120_000,
);
