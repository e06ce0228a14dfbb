import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import type { SandboxSpec } from "@holdfast/protocol";
import { missingDocker } from "@holdfast/testkit";
import { containerName, diskContainerName } from "./names.ts";
import { DockerMachine } from "./test-machine.ts";
import { launchAndDie, stopAndDie } from "./test-servers.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(30_000);
const spec: SandboxSpec = { network: "none" };
const TOOL = "/opt/installed/tool";

describe.skipIf(missing !== undefined)(`docker: the container's own files${missing ?? ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.open();
  }, TIMEOUT_MS);
  afterAll(() => machine.close(), TIMEOUT_MS);
  afterEach(async () => {
    await machine.clear();
    expect(await machine.leftovers()).toEqual([]);
  }, TIMEOUT_MS);

  const next = (ref: InstanceRef): InstanceRef =>
    machine.own({ ...ref, generation: ref.generation + 1, instanceId: `${ref.instanceId}+` });
  const stop = (ref: InstanceRef) => machine.provider.stop(ref, "graceful", soon());
  const installed = async () => {
    const ref = await machine.launch(spec);
    await machine.writeLayer(ref, TOOL, "it works\n");
    await machine.exec(ref, "echo mine > /workspace/file");
    return ref;
  };
  const diskFound = async (ref: InstanceRef) => {
    const seen = await machine.provider.observe(ref, soon());
    return seen.state === "running" ? seen.disk : seen.detail;
  };
  const names = async () =>
    ((await machine.daemon.ask("GET", "/containers/json?all=1")) as { Names: string[] }[]).flatMap(
      ({ Names }) => Names,
    );

  test(
    "survive a stop, and a server that dies at any request of the stop or of the next launch",
    async () => {
      let ref = await installed();
      expect(await diskFound(ref)).toEqual({ state: "new", lost: [] });
      // A stop is two requests, a launch from what is there three.
      for (const requests of [1, 2, 3]) {
        await stopAndDie(machine, ref, requests);
        expect(await stop(ref)).toMatchObject({ state: "absent", proof: "exited" });
        expect(await names()).toEqual([`/${diskContainerName(ref)}`]);
        expect(await machine.provider.observe(ref, soon())).toMatchObject({ proof: "exited" });
        const undone = next(ref);
        await launchAndDie(machine, undone, requests);
        expect(await stop(undone)).toMatchObject({ state: "absent", proof: "exited" });
        ref = next(undone);
        await launchAndDie(machine, ref, requests);
        await machine.launch(spec, ref);
        expect(await names()).toEqual([`/${containerName(ref)}`]);
        expect(await diskFound(ref)).toEqual({ state: "kept", lost: [] });
        const { stdout } = await machine.exec(
          ref,
          `cat ${TOOL} /workspace/file; echo new > /tmp/file; cat /tmp/file`,
        );
        expect(stdout).toBe("it works\nmine\nnew\n");
        const found = (await machine.provider.discover(soon())).filter(({ kind }) => kind === "instance");
        expect(found).toMatchObject([{ ref, fence: 7, lifetimeSeconds: 600, legacy: false }]);
      }
    },
    TIMEOUT_MS,
  );

  test(
    "are said to be lost if somebody removed the container, or asks for another image",
    async () => {
      const ref = await installed();
      await stop(ref);
      await machine.daemon.ask("DELETE", `/containers/${diskContainerName(ref)}`);
      const second = await machine.launch(spec, next(ref));
      expect(await diskFound(second)).toEqual({ state: "partly", lost: ["the container's own files"] });
      expect(await machine.exec(second, `cat /workspace/file; ls ${TOOL}`)).toMatchObject({
        stdout: "mine\n",
        exitCode: 2,
      });
      await stop(second);
      const third = await machine.launch({ ...spec, image: machine.daemon.images.busybox }, next(second));
      expect(await diskFound(third)).toEqual({ state: "partly", lost: ["the container's own files"] });
      expect(await names()).toEqual([`/${containerName(third)}`]);
      await stop(third);
      await machine.daemon.ask("DELETE", `/containers/${diskContainerName(ref)}`);
      for (const part of ["workspace", "home", "state"])
        await machine.daemon.ask("DELETE", `/volumes/hf-${ref.sandboxId}-${part}`);
      expect(await diskFound(await machine.launch(spec, next(third)))).toEqual({ state: "new", lost: [] });
    },
    TIMEOUT_MS,
  );

  test(
    "move to another container, where limits or mounts are not what they were, also if a server dies over it",
    async () => {
      const ref = await installed();
      await stop(ref);
      const small: SandboxSpec = { ...spec, limits: { memoryMiB: 128 } };
      // Before there is a new one, and before the old one is removed; then one goes on with that.
      let last = ref;
      for (const deaths of [[2], [3], [3, 2]]) {
        last = next(last);
        for (const requests of deaths) await launchAndDie(machine, last, requests, small);
        expect(await stop(last)).toMatchObject({ state: "absent", proof: "exited" });
        expect(await names()).toEqual([`/${diskContainerName(ref)}`]);
      }
      const again = await machine.launch(small, next(last));
      expect(await diskFound(again)).toEqual({ state: "kept", lost: [] });
      expect(await machine.exec(again, `cat ${TOOL} /workspace/file`)).toMatchObject({
        stdout: "it works\nmine\n",
      });
      const { HostConfig } = (await machine.inspect(again)) as { HostConfig: { Memory: number } };
      expect(HostConfig.Memory).toBe(128 * 1024 * 1024);
      expect(await names()).toEqual([`/${containerName(again)}`]);
    },
    TIMEOUT_MS,
  );

  test(
    "come back on a network that was removed and made anew, with the users that were added, and on their own image",
    async () => {
      const ref = await machine.launch({});
      const { stdout } = await machine.exec(ref, "cat /etc/passwd");
      await machine.writeLayer(ref, "/etc/passwd", `${stdout}added:x:4711:4711::/:/bin/sh\n`);
      await stop(ref);
      const other = await machine.launch({});
      await stop(other);
      await machine.provider.removeDisk(other, soon());
      const networks = (await machine.daemon.ask("GET", "/networks")) as { Name: string }[];
      expect(networks.filter(({ Name }) => Name.startsWith("hf-"))).toEqual([]);
      const again = next(ref);
      // By a server whose default is another image: who named none stays on what there was.
      const server = machine.open({ defaultImage: machine.daemon.images.busybox });
      await server.launch(again, machine.plan({}), soon());
      expect(await diskFound(again)).toEqual({ state: "kept", lost: [] });
      expect((await machine.exec(again, "cat /etc/passwd")).stdout).toContain("added:x:4711");
    },
    TIMEOUT_MS,
  );

  test(
    "survive a container that cannot be started any more; where they cannot, it is said what to do",
    async () => {
      const asRoot = { ...spec, user: "0:0" };
      const ref = await machine.launch(asRoot);
      await machine.exec(
        ref,
        "mkdir /opt; echo mine > /opt/tool; echo added:x:4711:4711::/:/bin/sh >> /etc/passwd",
      );
      await machine.exec(ref, "echo mine > /workspace/file");
      await stop(ref);
      const data = join(dirname(machine.daemon.host.replace("unix://", "")), "data");
      const facts = async (name: string) =>
        (await machine.daemon.ask("GET", `/containers/${name}/json`)) as {
          Id: string;
          GraphDriver: { Data: { UpperDir: string } };
        };
      const { Id } = await facts(diskContainerName(ref));
      // As if it had been made while the daemon had another runtime.
      const file = join(data, "containers", Id, "hostconfig.json");
      writeFileSync(file, readFileSync(file, "utf8").replace('"Runtime":"runc"', '"Runtime":"gone"'));
      await machine.daemon.restart({ signal: "SIGTERM" });

      // Servers die before the old one is put back, before there is a new one, and before the old one is removed; then
      // one goes on with that, and dies before the new one was ever started.
      let last = ref;
      for (const deaths of [[4], [6], [7, 2]]) {
        last = next(last);
        for (const requests of deaths) await launchAndDie(machine, last, requests, asRoot);
        expect(await stop(last)).toMatchObject({ state: "absent", proof: "exited" });
        expect(await names()).toEqual([`/${diskContainerName(ref)}`]);
      }
      expect((await facts(diskContainerName(ref))).Id).not.toBe(Id);
      const again = await machine.launch(asRoot, next(last));
      expect(await diskFound(again)).toEqual({ state: "kept", lost: [] });
      const { stdout } = await machine.exec(
        again,
        "cat /opt/tool /workspace/file; grep -c added /etc/passwd",
      );
      expect(stdout).toBe("mine\nmine\n1\n");
      expect(await names()).toEqual([`/${containerName(again)}`]);

      await stop(again);
      const { GraphDriver } = await facts(diskContainerName(ref));
      rmSync(GraphDriver.Data.UpperDir, { recursive: true });
      const hopeless = next(again);
      const launched = machine.launch(asRoot, hopeless);
      const remedy = `docker rm ${diskContainerName(ref)}`;
      await expect(launched).rejects.toMatchObject({
        code: "launch_failed",
        message: expect.stringContaining(remedy),
      });
      await stop(hopeless);
      await machine.daemon.ask("DELETE", `/containers/${diskContainerName(ref)}`);
      const without = await machine.launch(asRoot, next(hopeless));
      expect(await diskFound(without)).toEqual({ state: "partly", lost: ["the container's own files"] });
      expect(await machine.exec(without, "cat /workspace/file")).toMatchObject({ stdout: "mine\n" });
    },
    TIMEOUT_MS,
  );

  test(
    "of an instance that ends beside a later one are not kept, and those of the later one are",
    async () => {
      const old = await installed();
      const later = await machine.launch(spec, next(old));
      await machine.writeLayer(later, TOOL, "of the later one\n");
      expect((await stop(old)).detail).toContain("is removed");
      expect((await stop(later)).detail).toContain("is kept");
      const last = await machine.launch(spec, next(later));
      expect(await machine.exec(last, `cat ${TOOL}`)).toMatchObject({ stdout: "of the later one\n" });
    },
    TIMEOUT_MS,
  );
});
