import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
      fill(join(dataRoot, "filler"));
      expect((await machine.provider.capacity(soon())).disk.freeBytes).toBe(0);
      await expect(machine.launch({ network: "none" })).rejects.toMatchObject({
        code: "host_storage_unusable",
        message: expect.stringContaining(dataRoot),
        details: { errno: "ENOSPC" },
      });
      expect(await machine.provider.stop(ref, "graceful", soon())).toMatchObject({ proof: "exited" });
      await machine.clear();
      expect(await machine.leftovers()).toEqual([]);
    } finally {
      await machine.close();
      must("umount", dataRoot);
      rmSync(dataRoot, { recursive: true });
    }
  });
});

function fill(file: string): void {
  try {
    writeFileSync(file, Buffer.alloc(110 * 1024 * 1024));
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  }
}

function must(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(stderr.toString());
}
