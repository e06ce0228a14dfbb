import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { missingDocker } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";

/** Any id without rights will do; it need not be in the host's list of users. */
const PLAIN_UID = 64_123;
const missing = missingDocker();

describe.skipIf(missing !== undefined)(`docker: a plain user${missing ? ` (${missing})` : ""}`, () => {
  test("may use a daemon whose socket is open to him, and is told if it is not", async () => {
    const machine = await DockerMachine.open();
    const home = mkdtempSync(join(tmpdir(), "holdfast-plain-"));
    chownSync(home, PLAIN_UID, PLAIN_UID);
    try {
      const socket = machine.daemon.host.replace("unix://", "");
      chmodSync(dirname(socket), 0o755);
      chmodSync(socket, 0o660);
      expect(serve(machine, home).stderr).toContain("this user may not use Docker's socket");
      chmodSync(socket, 0o666);
      expect(JSON.parse(serve(machine, home).stdout)).toEqual({
        missing: [],
        states: ["running", "absent", "absent"],
      });
      expect(await machine.leftovers()).toEqual([]);
    } finally {
      rmSync(home, { recursive: true, force: true });
      await machine.close();
    }
  }, 120_000);
});

function serve({ daemon, bundle }: DockerMachine, dataDir: string): { stdout: string; stderr: string } {
  const id = String(PLAIN_UID);
  const program = join(import.meta.dir, "../../fixtures/plain-docker-server.ts");
  const user = ["setpriv", "--reuid", id, "--regid", id, "--clear-groups"];
  const server = [process.execPath, program, daemon.host, dataDir, bundle, daemon.images.debian];
  const { stdout, stderr } = Bun.spawnSync([...user, ...server], {
    env: { PATH: "/usr/bin:/bin", HOME: dataDir },
  });
  return { stdout: stdout.toString(), stderr: stderr.toString() };
}
