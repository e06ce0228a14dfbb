import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DockerDaemon,
  type ImageRegistry,
  missingDocker,
  missingRegistry,
  startDockerDaemon,
  startImageRegistry,
} from "@holdfast/testkit";
import { Operator, Sandbox } from "holdfast";
import { holdfastBin, run, TestServer } from "./harness.ts";

const missing = missingDocker() ?? missingRegistry();
const onDocker = missing === undefined ? test : test.skip;
let daemon: DockerDaemon;
let registry: ImageRegistry;
let server: TestServer;
let bin = "";

beforeAll(async () => {
  if (missing !== undefined) return;
  // On our network, where the registry is.
  daemon = await startDockerDaemon({ remote: { hidden: [] } });
  registry = await startImageRegistry();
  await registry.push(daemon, daemon.images.busybox, "tools:1");
  await daemon.ask("DELETE", `/images/${daemon.images.busybox}`);
  // As on a machine whose security module forbids namespaces to this program.
  bin = mkdtempSync(join(tmpdir(), "holdfast-bin-"));
  writeFileSync(join(bin, "bwrap"), "#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n");
  chmodSync(join(bin, "bwrap"), 0o755);
  server = await TestServer.start({
    args: ["--docker-image", `${registry.host}/tools:1`],
    env: { DOCKER_HOST: daemon.host, PATH: `${bin}:${process.env.PATH}` },
  });
}, 120_000);

afterAll(async () => {
  await server?.dispose();
  await registry?.stop();
  await daemon?.stop();
  rmSync(bin, { recursive: true, force: true });
}, 120_000);

onDocker(
  "a machine without namespaces has Docker as its default, and says so; without either it is told both remedies",
  async () => {
    expect(server.output).toContain("sandboxes in: docker, because local cannot be used (");
    expect(await (await Operator.connect(server.at)).providers()).toMatchObject([
      {
        provider: "docker",
        isDefault: true,
        defaultBecause: expect.stringContaining("local cannot be used"),
      },
    ]);
    const env = { PATH: `${bin}:${process.env.PATH}`, HOLDFAST_DATA_DIR: join(bin, "data") };
    const [examined, refused] = await Promise.all([
      run([holdfastBin, "doctor", "-o", "json"], { env: { ...env, DOCKER_HOST: daemon.host } }),
      run([holdfastBin, "serve", "--port", "0"], { env: { ...env, DOCKER_HOST: `unix://${bin}/none.sock` } }),
    ]);
    const { checks, default: chosen } = JSON.parse(examined.stdout);
    expect([examined.exitCode, chosen]).toEqual([0, "docker"]);
    expect(checks).toContainEqual(
      expect.objectContaining({ provider: "docker", name: "instance", ok: true }),
    );
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/hint: for local: .*; or for docker: .*systemctl start docker/s),
    ]);
  },
  120_000,
);

onDocker(
  "whoever creates a sandbox is told how its image comes, and why another's does not",
  async () => {
    const image = `${registry.host}/tools:none`;
    const refused = Sandbox.create({ image, network: "none" }, server.at).catch((error) => error);
    registry.hold();
    const creating = run([holdfastBin, "create", "--name", "far", "--network", "none"], {
      env: { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token },
    });
    await until(async () => (await typesOf("far")).includes("fetching"));
    registry.letGo();
    const { stderr, exitCode } = await creating;
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining(`fetching the image ${registry.host}/tools:1`),
    ]);
    const types = await typesOf("far");
    expect(types.filter((type, at) => type !== types[at - 1])).toEqual([
      "created",
      "fetching",
      "fetched",
      "launching",
      "live",
    ]);
    expect(await refused).toMatchObject({
      code: "launch_failed",
      message: expect.stringContaining(
        `the image ${image} could not be fetched, its registry has no such version`,
      ),
    });
  },
  120_000,
);

async function typesOf(name: string): Promise<string[]> {
  const events = await Sandbox.events(name, server.at).catch(() => []);
  return events.map(({ type }) => type);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(50);
}
