import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { missingDocker, ROOTLESS_UID, startDockerDaemon } from "@holdfast/testkit";
import { buildKeeper } from "./test-machine.ts";

const missing = missingDocker("podman-rootless");

test.skipIf(missing !== undefined)(
  `provider conformance: a rootless Podman, used by a plain user${missing ? ` (${missing})` : ""}`,
  async () => {
    const daemon = await startDockerDaemon({ engine: "podman-rootless" });
    try {
      const id = String(ROOTLESS_UID);
      const user = ["setpriv", "--reuid", id, "--regid", id, "--clear-groups"];
      const suite = "./fixtures/rootless-conformance.ts";
      const run = Bun.spawn([...user, process.execPath, "test", suite], {
        cwd: join(import.meta.dir, "../.."),
        env: {
          ...{
            PATH: process.env.PATH,
            HOME: "/nonexistent",
            DOCKER_HOST: daemon.host,
            BUNDLE: buildKeeper(),
          },
          CGROUPS: existsSync("/sys/fs/cgroup/cgroup.controllers") ? "2" : "1",
        },
        stderr: "pipe",
      });
      const said = await new Response(run.stderr).text();
      if ((await run.exited) !== 0) process.stderr.write(said);
      const count = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(said)?.[1]);
      expect({ failed: count("fail"), exitCode: run.exitCode }).toEqual({ failed: 0, exitCode: 0 });
      expect(count("pass")).toBeGreaterThan(20);
    } finally {
      await daemon.stop();
    }
  },
  300_000,
);
