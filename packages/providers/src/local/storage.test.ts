import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { Machine } from "../../fixtures/machine.ts";
import { createLocalProvider } from "../index.ts";
import { errnoOf, isFull, namingStorage } from "./storage.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);
const asRoot = process.getuid?.() === 0;

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

test.each([
  ["the error itself", failure("EROFS"), "EROFS"],
  ["its cause", new HoldfastError("internal", "no", { cause: failure("EIO") }), "EIO"],
  ["what a helper said", new HoldfastError("internal", "no", { details: { errno: "ENOSPC" } }), "ENOSPC"],
  ["another errno", failure("EACCES"), undefined],
  ["no error at all", "ENOSPC", undefined],
])("the file system's own failure is seen in %s", (_, error, errno) => {
  expect(errnoOf(error)).toBe(errno as ReturnType<typeof errnoOf>);
});

const MIB = 1024n * 1024n;
test.each([
  ["room for both", { freeBytes: 4096n * MIB, inodes: 100n, freeInodes: 1n }, false],
  ["no inode left", { freeBytes: 4096n * MIB, inodes: 100n, freeInodes: 0n }, true],
  ["no fixed number of inodes", { freeBytes: 4096n * MIB, inodes: 0n, freeInodes: 0n }, false],
  ["less than a bundle needs", { freeBytes: 100n * MIB, inodes: 100n, freeInodes: 50n }, true],
])("full or not: %s", (_, space, full) => {
  expect(isFull(space)).toBe(full);
});

test.each([
  ["ENOSPC", "/proc", "host_storage_unusable"],
  ["ENOSPC", tmpdir(), "ENOSPC"],
  ["EIO", tmpdir(), "host_storage_unusable"],
  ["EACCES", "/proc", "EACCES"],
])("%s in %s becomes %s", async (errno, dataDir, code) => {
  const call = namingStorage(dataDir, () => Promise.reject(failure(errno)));
  await expect(call).rejects.toMatchObject({ code });
});

/** A data dir on a file system of its own, of this size. */
async function onOwnDisk(sizeMiB: number, work: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = join(machine.dir, `disk-${sizeMiB}`);
  mkdirSync(dataDir);
  await sh("mount", "-t", "tmpfs", "-o", `size=${sizeMiB}m,mode=0755`, "tmpfs", dataDir);
  try {
    await work(dataDir);
  } finally {
    // All that lie over each other there.
    await sh("umount", "--lazy", "--recursive", dataDir);
  }
}

async function sh(...argv: string[]): Promise<void> {
  const { exitCode, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(stderr.toString());
}

test.if(asRoot)("scenario 47: a launch on a full disk says so, and its remains can be removed", async () => {
  await onOwnDisk(8, async (dataDir) => {
    const provider = createLocalProvider({ dataDir, keeperBundle: machine.bundle });
    const ref = machine.newRef();
    await expect(provider.launch(ref, machine.plan({ network: "none" }), soon())).rejects.toMatchObject({
      code: "host_storage_unusable",
      details: { errno: "ENOSPC" },
    });
    expect((await provider.stop(ref, "force", soon())).state).toBe("absent");
    expect((await provider.removeDisk(ref, soon())).state).toBe("absent");
  });
});

test.if(asRoot)(
  "scenario 47: on a disk that became read-only nothing is launched, what runs goes on, and a stop ends it",
  async () => {
    await onOwnDisk(512, async (dataDir) => {
      const provider = createLocalProvider({ dataDir, keeperBundle: machine.bundle });
      const [ref, next, stopped] = [machine.newRef(), machine.newRef(), machine.newRef()];
      for (const one of [ref, stopped]) await provider.launch(one, machine.plan({ network: "none" }), soon());
      await provider.stop(stopped, "force", soon());
      // Over the first one, which has files open for writing: the kernel would not change that to read-only.
      await sh("mount", "--bind", dataDir, dataDir);
      await sh("mount", "-o", "remount,ro,bind", dataDir);
      const unusable = { code: "host_storage_unusable", details: { errno: "EROFS" } };
      await expect(provider.launch(next, machine.plan({ network: "none" }), soon())).rejects.toMatchObject(
        unusable,
      );
      expect((await provider.observe(ref, soon())).state).toBe("running");
      await expect(provider.stop(ref, "force", soon())).rejects.toMatchObject(unusable);
      expect((await provider.observe(ref, soon())).state).toBe("absent");
      await expect(provider.removeDisk(stopped, soon())).rejects.toMatchObject(unusable);
      await sh("umount", dataDir);
      expect((await provider.stop(ref, "force", soon())).state).toBe("absent");
      for (const one of [ref, stopped]) expect((await provider.removeDisk(one, soon())).state).toBe("absent");
    });
  },
  120_000,
);
