import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { InstanceRef } from "@holdfast/core";
import { missingDocker } from "@holdfast/testkit";
import { networkName } from "./network.ts";
import { DockerMachine } from "./test-machine.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);

interface Inspected {
  NetworkSettings: { Networks: Record<string, { IPAddress: string; Gateway: string }> };
}

describe.skipIf(missing !== undefined)(`docker: networks${missing ? ` (${missing})` : ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.open();
  }, TIMEOUT_MS);
  afterAll(() => machine.close(), TIMEOUT_MS);

  async function addressOf(ref: InstanceRef): Promise<{ IPAddress: string; Gateway: string }> {
    const { Networks } = ((await machine.inspect(ref)) as Inspected).NetworkSettings;
    expect(Object.keys(Networks)).toEqual([networkName(ref.installationId)]);
    return Networks[networkName(ref.installationId)] ?? { IPAddress: "", Gateway: "" };
  }

  async function end(ref: InstanceRef): Promise<string> {
    await machine.provider.stop(ref, "force", soon());
    return (await machine.provider.removeDisk(ref, soon())).detail;
  }

  test(
    "sandboxes have one network, made once by however many, do not reach each other, and its end is that of the last",
    async () => {
      const spec = { image: machine.daemon.images.busybox };
      const servers = [machine.provider, machine.open(), machine.open()];
      const refs = servers.map(() => machine.own(machine.newRef()));
      const launches = servers.map((server, i) =>
        server.launch(refs[i] as InstanceRef, machine.plan(spec), soon()),
      );
      await Promise.all(launches);
      const [one, other, last] = refs as [InstanceRef, InstanceRef, InstanceRef];
      const { IPAddress, Gateway } = await addressOf(one);
      await addressOf(other);
      const listen =
        "while :; do echo hello | nc -l -p 8000; done >/dev/null 2>&1 & until nc -w 5 127.0.0.1 8000; do sleep 0.1; done";
      expect(await machine.exec(one, listen)).toMatchObject({ stdout: "hello\n" });
      expect(await machine.exec(one, `nc -w 5 ${IPAddress} 8000`)).toMatchObject({ stdout: "hello\n" });
      expect(await machine.exec(other, `nc -w 2 ${IPAddress} 8000`)).toMatchObject({ stdout: "" });
      // The way out is there all the same.
      expect(await machine.exec(other, "ip route")).toMatchObject({
        stdout: expect.stringContaining(`default via ${Gateway} dev eth0`),
      });
      const name = networkName(one.installationId);
      for (const ref of [one, other]) expect(await end(ref)).toContain(`others use the network ${name}`);
      expect(await end(last)).toContain(`the network ${name} does not exist`);
      expect(await machine.leftovers()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "a network of that name that somebody else made is neither used nor removed",
    async () => {
      const ref = machine.own(machine.newRef());
      const Name = networkName(ref.installationId);
      const made = (await machine.daemon.ask("POST", "/networks/create", { Name })) as { Id: string };
      await expect(machine.launch({}, ref)).rejects.toMatchObject({ code: "already_exists" });
      await end(ref);
      expect(await machine.daemon.ask("GET", `/networks/${made.Id}`)).toMatchObject({ Name });
      await machine.daemon.ask("DELETE", `/networks/${made.Id}`);
    },
    TIMEOUT_MS,
  );
});
