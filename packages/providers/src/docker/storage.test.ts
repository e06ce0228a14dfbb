import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missingDocker } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";

const missing = missingDocker();
const soon = () => AbortSignal.timeout(20_000);

describe.skipIf(missing !== undefined)(`docker: its disk${missing ? ` (${missing})` : ""}`, () => {
  test("a full one refuses new instances by its name, and what is there can be deleted", async () => {
    const dataRoot = mkdtempSync(join(tmpdir(), "holdfast-full-"));
    must("mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", dataRoot);
    const machine = await DockerMachine.open({ dataRoot });
    try {
      const ref = await machine.launch({ network: "none" });
      await machine.writeLayer(ref, "/opt/tool", "installed\n");
      const filled = await machine.exec(ref, "cat /dev/zero > /workspace/fill");
      expect(filled).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("No space left on device"),
      });
      expect((await machine.provider.capacity(soon())).disk.freeBytes).toBe(0);
      await expect(machine.launch({ network: "none" })).rejects.toMatchObject({
        code: "host_storage_unusable",
        message: expect.stringContaining(dataRoot),
        details: { errno: "ENOSPC" },
      });
      // Not even another name can be written down: it keeps its own, and is no instance any more.
      for (const _ of ["once", "and again"]) {
        expect(await machine.provider.stop(ref, "graceful", soon())).toMatchObject({
          proof: "exited",
          detail: expect.stringContaining("is kept under its name"),
        });
        const found = await machine.provider.discover(soon());
        expect(found.filter((one) => one.ref.sandboxId === ref.sandboxId)).toMatchObject([{ kind: "disk" }]);
      }
      must("sh", "-c", `rm ${dataRoot}/volumes/hf-${ref.sandboxId}-workspace/_data/fill`);
      const next = await machine.launch({ network: "none" }, { ...ref, instanceId: "next", generation: 2 });
      expect(await machine.exec(next, "cat /opt/tool")).toMatchObject({ stdout: "installed\n" });
      expect(await machine.exec(next, "cat /dev/zero > /workspace/fill")).toMatchObject({ exitCode: 1 });
      // Of a generation that the container was not made for.
      for (const _ of ["once", "and again"])
        expect((await machine.provider.stop(next, "force", soon())).detail).toContain(
          "is kept under its name",
        );
      await machine.clear();
      expect(await machine.leftovers()).toEqual([]);
    } finally {
      await machine.close().finally(() => must("umount", dataRoot));
      rmSync(dataRoot, { recursive: true });
    }
  }, 120_000);
});

function must(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(stderr.toString());
}
