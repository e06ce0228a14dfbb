import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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
  daemon = await startDockerDaemon();
  server = await TestServer.start({
    args: ["--providers", "docker,local", "--docker-image", daemon.images.debian],
    env: { DOCKER_HOST: daemon.host },
  });
}, 120_000);

afterAll(async () => {
  await server?.dispose();
  await daemon?.stop();
}, 120_000);

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
    const used = await sandbox.usage();
    expect(used).toMatchObject({ memoryBy: "cgroup", isDiskWhole: true });
    expect(used.diskBytes).toBeGreaterThan(20_000_000);
    expect(used.memoryBytes).toBeGreaterThan(1024 ** 2);
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

onDocker(
  "watch, git and sync are the same in a container",
  async () => {
    const sandbox = await Sandbox.create({ name: "boxed-work", network: "none" }, server.at);
    const watch = sandbox.watch("/workspace");
    expect((await watch.next()).value).toMatchObject({ type: "ready" });
    const make = [
      "git init -q -b main origin && cd origin && echo 1 > file && git add -A",
      "git -c user.name=a -c user.email=a@example.com commit -qm one",
    ];
    expect(await sandbox.exec(make.join("\n"), { cwd: "/workspace" })).toMatchObject({ exitCode: 0 });
    for await (const event of watch) if ("path" in event && event.path === "/workspace/origin/file") break;
    const cloned = await sandbox.git.clone("file:///workspace/origin", "/workspace/app");
    expect(cloned).toMatchObject({ status: "cloned", branch: "main" });

    const local = mkdtempSync(join(tmpdir(), "holdfast-docker-sync-"));
    try {
      writeFileSync(join(local, "file"), "2\n");
      symlinkSync("file", join(local, "link"));
      const sync = () =>
        sandbox.files.sync(local, "/workspace/app", { stateFile: `${local}.json`, direction: "both" });
      expect(await sync()).toMatchObject({ conflicts: [{ path: "file" }], uploaded: ["link"] });
      await sandbox.files.write("/workspace/app/file", "2\n");
      await sandbox.files.write("/workspace/app/new", "of the container\n");
      expect(await sync()).toMatchObject({ conflicts: [], uploaded: [], downloaded: ["new"] });
      expect(readFileSync(join(local, "new"), "utf8")).toBe("of the container\n");
    } finally {
      for (const path of [local, `${local}.json`]) rmSync(path, { recursive: true, force: true });
    }
    const { branch, files } = await sandbox.git.status("/workspace/app");
    expect([branch, files.map(({ path }) => path).sort()]).toEqual(["main", ["file", "link", "new"]]);
    expect(JSON.stringify(await sandbox.git.diff("/workspace/app"))).toContain("+2");
    await sandbox.delete();
  },
  120_000,
);
