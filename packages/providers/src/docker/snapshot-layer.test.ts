import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { CopyOptions, InstanceRef, SnapshotNote, SnapshotVault } from "@holdfast/core";
import type { SandboxSpec } from "@holdfast/protocol";
import { type Engine, missingDocker } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";

const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(60_000);
const spec: SandboxSpec = { network: "none" };
const TOOL = "/opt/installed/tool";
const options: CopyOptions = {
  ...{
    checksum: true,
    roomBytes: 1024 ** 3,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  },
};
const note: SnapshotNote = {
  ...{ name: "before", sandboxId: "", generation: 1, origin: "request", spec, labels: {} },
  ...{ createdAt: 1, expiresAt: null },
};

for (const engine of ["docker", "podman"] satisfies Engine[]) {
  const missing = missingDocker(engine);
  suite(engine, { missing, open: () => DockerMachine.open({ engine }) });
}
suite("a daemon that does not see our files", {
  missing: missingDocker(),
  open: () => DockerMachine.openFar(),
  only: "comes back",
});

function suite(
  name: string,
  {
    missing,
    open,
    only = "",
  }: { missing: string | undefined; open: () => Promise<DockerMachine>; only?: string },
): void {
  const wanted = (name: string, work: () => Promise<void>) =>
    name.includes(only) && test(name, work, TIMEOUT_MS);
  describe.skipIf(missing !== undefined)(`a snapshot's layer: ${name} ${missing ?? ""}`, () => {
    let machine: DockerMachine;
    let vault: SnapshotVault;
    beforeAll(async () => {
      machine = await open();
      vault = machine.provider.snapshots as SnapshotVault;
    }, TIMEOUT_MS);
    afterAll(() => machine.close(), TIMEOUT_MS);
    afterEach(async () => {
      await machine.clear();
      expect(await machine.leftovers()).toEqual([]);
    }, TIMEOUT_MS);

    const refOf = (snapshotId: string) => ({ installationId: "test-installation", snapshotId });
    const make = (snapshotId: string, of: InstanceRef) => vault.make(refOf(snapshotId), of, note, options);
    const restored = async (fromSnapshot: string) => {
      const ref = machine.own(machine.newRef());
      await machine.provider.launch(ref, { ...machine.plan(spec), fromSnapshot }, soon());
      return ref;
    };
    const images = async () =>
      ((await machine.daemon.ask("GET", "/images/json")) as { RepoTags: string[] | null }[])
        .flatMap(({ RepoTags }) => RepoTags ?? [])
        .flatMap((tag) => /holdfast\/snapshot:(.*)$/.exec(tag)?.[1] ?? [])
        .sort();

    wanted(
      "comes back in what is made from it, goes with the last that uses it, and is nobody else's",
      async () => {
        const plain = await machine.launch(spec);
        await machine.exec(plain, "echo mine > /workspace/file");
        expect((await make("plain", plain)).parts.map(({ name }) => name)).toEqual(["workspace", "home"]);
        expect(await images()).toEqual([]);

        await machine.writeLayer(plain, TOOL, "it works\n");
        const made = await make("one", plain);
        expect(made.parts).toMatchObject([
          { name: "workspace", files: 1, sizeBytes: 5 },
          { name: "home" },
          {
            name: "layer",
            files: 3,
            sizeBytes: expect.any(Number),
            image: expect.stringMatching(/^sha256:/),
          },
        ]);
        expect(await make("one", plain)).toEqual(made);
        expect((await vault.discover(soon())).find(({ ref }) => ref.snapshotId === "one")?.content).toEqual(
          made,
        );
        // It runs on.
        expect(await machine.exec(plain, "cat /workspace/file")).toMatchObject({ stdout: "mine\n" });

        const fork = await restored("one");
        const look = `cat ${TOOL} /workspace/file; id -un`;
        const { stdout: user } = await machine.exec(plain, "id -un");
        expect(await machine.exec(fork, look)).toMatchObject({ stdout: `it works\nmine\n${user}` });
        await machine.writeLayer(fork, "/opt/installed/more", "more\n");
        await machine.provider.stop(fork, "graceful", soon());
        // Of one that is stopped, and of one that is of a snapshot itself.
        await make("two", fork);
        expect(await images()).toEqual(["one", "two"]);

        const seen = await vault.remove(refOf("one"), soon());
        expect(seen).toMatchObject({ state: "absent", detail: expect.stringContaining("stays until") });
        await vault.removeDrafts(soon());
        expect(await images()).toEqual(["one", "two"]);
        const next = { ...fork, instanceId: "next", generation: 2 };
        await machine.launch(spec, next);
        expect(await machine.exec(next, look)).toMatchObject({ stdout: `it works\nmine\n${user}` });

        const second = await restored("two");
        expect(await machine.exec(second, `cat ${TOOL} /opt/installed/more`)).toMatchObject({
          stdout: "it works\nmore\n",
        });
        await machine.clear();
        expect(await images()).toEqual(["two"]);
        for (const id of ["two", "plain"])
          expect((await vault.remove(refOf(id), soon())).detail).toEndWith("does not exist");
        expect(await images()).toEqual([]);
      },
    );

    wanted("half made is removed, and a foreign image of the same kind is not", async () => {
      const ref = await machine.launch(spec);
      await machine.writeLayer(ref, TOOL, "it works\n");
      const stopped = { ...options, roomBytes: 1 };
      await expect(vault.make(refOf("small"), ref, note, stopped)).rejects.toMatchObject({
        code: "capacity_exhausted",
      });
      // Made, and then nobody wrote it down.
      await make("half", ref);
      const dir = join(machine.dataDir, "docker/snapshots");
      await Bun.$`rm -rf ${join(dir, "half")}`.quiet();
      const { busybox } = machine.daemon.images;
      await machine.daemon.ask("POST", `/images/${busybox}/tag?repo=holdfast/snapshot&tag=foreign`);
      const other = await make("other", ref);
      await machine.daemon.ask("POST", "/images/holdfast/snapshot:other/tag?repo=theirs&tag=latest");
      expect(await images()).toEqual(["foreign", "half", "other"]);
      await vault.removeDrafts(soon());
      expect(await images()).toEqual(["foreign", "other"]);
      await vault.remove(refOf("other"), soon());
      await vault.remove(refOf("foreign"), soon());
      expect(await images()).toEqual(["foreign"]);
      // Their own name for it keeps it.
      const theirs = (await machine.daemon.ask("GET", "/images/theirs:latest/json")) as { Id: string };
      expect(theirs.Id).toBe(other.parts[2]?.image as string);
      for (const name of ["theirs:latest", "holdfast/snapshot:foreign"])
        await machine.daemon.ask("DELETE", `/images/${name}`);
      expect(existsSync(dir) ? readdirSync(dir) : []).toEqual([]);
    });

    wanted("that somebody removed is said, with what to do", async () => {
      const image = await machine.daemon.importImage("with-volume", "debian", ["VOLUME /data"]);
      const ref = await machine.launch({ ...spec, image });
      await machine.writeLayer(ref, TOOL, "it works\n");
      expect((await make("gone", ref)).parts.slice(2)).toMatchObject([
        { name: "layer" },
        { name: "the volume /data", leftOut: true },
      ]);
      await machine.daemon.ask("DELETE", "/images/holdfast/snapshot:gone");
      await expect(restored("gone")).rejects.toMatchObject({
        code: "launch_failed",
        hint: expect.stringContaining("holdfast export gone"),
      });
      await vault.remove(refOf("gone"), soon());
    });
  });
}
