import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type DockerDaemon,
  type ImageRegistry,
  missingDocker,
  missingRegistry,
  startDockerDaemon,
  startImageRegistry,
} from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { holdfastBin, run, TestServer } from "./harness.ts";

const missing = missingDocker() ?? missingRegistry();
const onDocker = missing === undefined ? test : test.skip;
let daemon: DockerDaemon;
let registry: ImageRegistry;
let server: TestServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  // On our network, where the registry is.
  daemon = await startDockerDaemon({ remote: { hidden: [] } });
  registry = await startImageRegistry();
  await registry.push(daemon, daemon.images.busybox, "tools:1");
  await daemon.ask("DELETE", `/images/${daemon.images.busybox}`);
  server = await TestServer.start({
    args: ["--providers", "docker", "--docker-image", `${registry.host}/tools:1`],
    env: { DOCKER_HOST: daemon.host },
  });
}, 60_000);

afterAll(async () => {
  await server?.dispose();
  await registry?.stop();
  await daemon?.stop();
}, 60_000);

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
  60_000,
);

async function typesOf(name: string): Promise<string[]> {
  const events = await Sandbox.events(name, server.at).catch(() => []);
  return events.map(({ type }) => type);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(50);
}
