import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { missingDocker } from "@holdfast/testkit";
import { containerName } from "./names.ts";
import { DockerMachine } from "./test-machine.ts";
import { killTooLate, launchAndDie } from "./test-servers.ts";
import { tryLaunch } from "./trial.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);

describe.skipIf(missing !== undefined)(`docker: what is there${missing ? ` (${missing})` : ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.open();
  }, TIMEOUT_MS);
  afterAll(() => machine.close(), TIMEOUT_MS);
  afterEach(async () => {
    await machine.clear();
    expect(await machine.leftovers()).toEqual([]);
  }, TIMEOUT_MS);

  const ask = (method: string, path: string, body?: unknown) => machine.daemon.ask(method, path, body);
  const identityFile = (ref: InstanceRef) =>
    join(machine.dataDir, "docker/instances", `hf-${ref.sandboxId}-g${ref.generation}`, "identity.json");

  test(
    "a container that somebody removed is not found, which is no proof, and is not made again under its name",
    async () => {
      const ref = await machine.launch({ network: "none" });
      await ask("DELETE", `/containers/${containerName(ref)}?force=1`);
      expect(await machine.provider.observe(ref, soon())).toMatchObject({
        state: "absent",
        proof: "not_found",
      });
      await expect(machine.provider.launch(ref, machine.plan({}), soon())).rejects.toMatchObject({
        code: "launch_failed",
        message: expect.stringContaining("its container was removed"),
      });
    },
    TIMEOUT_MS,
  );

  test(
    "that a launch worked is believed by the next server on this daemon, unless it is told to try again",
    async () => {
      const said = async (options: { tryAgain?: boolean; keeperBundle?: string } = {}) => {
        const checks = await machine.open(options).probe();
        return checks.find(({ name }) => name === "instance")?.detail;
      };
      expect(await said()).toMatch(/made and removed in \d+ ms; its keeper is reached by a socket/);
      expect(await said()).toMatch(/worked before with this daemon; its keeper is reached by a socket/);
      expect(await said({ tryAgain: true })).toContain("made and removed");
      const another = join(machine.dataDir, "another-keeper");
      cpSync(machine.bundle, another, { recursive: true });
      expect(await said({ keeperBundle: another })).toContain("made and removed");
    },
    TIMEOUT_MS,
  );

  test(
    "what was launched before the machine started anew and is not found has ended with it",
    async () => {
      const ref = await machine.launch({ network: "none" });
      await ask("DELETE", `/containers/${containerName(ref)}?force=1`);
      const identity = JSON.parse(readFileSync(identityFile(ref), "utf8"));
      writeFileSync(identityFile(ref), JSON.stringify({ ...identity, bootId: "of-another-start" }));
      // One after the other: a stop removes what the look goes by.
      const looks = [
        await machine.provider.observe(ref, soon()),
        await machine.provider.stop(ref, "graceful", soon()),
      ];
      expect(looks).toMatchObject(looks.map(() => ({ state: "absent", proof: "host_reset" })));
    },
    TIMEOUT_MS,
  );

  test(
    "the end of an instance says how it ended, and a removed one how it was ended",
    async () => {
      const ref = await machine.launch({ network: "none" });
      await machine.crash(ref);
      const detail = expect.stringMatching(/^container \w{12} ended with exit code 137 at 20/);
      expect(await machine.provider.observe(ref, soon())).toEqual({
        state: "absent",
        proof: "exited",
        cause: "killed_outside",
        detail,
      });
      const late = await machine.launch({ network: "none" });
      expect(await killTooLate(machine, late)).toMatchObject({ state: "absent", proof: "exited" });
      const gentle = await machine.launch({ network: "none" });
      expect(await machine.provider.stop(gentle, "graceful", soon())).toMatchObject({
        proof: "exited",
        detail: expect.stringMatching(/ended with exit code 0 .* and is kept$/),
      });
    },
    TIMEOUT_MS,
  );

  // Three volumes, the container, its files' owner, the start: a server may die before each of them.
  for (const requests of [1, 2, 3, 4, 5, 6, 7]) {
    test(
      `a server that died before its request ${requests} leaves a launch that can be finished, or undone`,
      async () => {
        const [finished, undone] = [machine.own(machine.newRef()), machine.own(machine.newRef())];
        for (const ref of [finished, undone]) await launchAndDie(machine, ref, requests);
        const { provider } = machine;
        await provider.launch(finished, machine.plan({ network: "none" }), soon());
        expect(await machine.exec(finished, "echo up")).toMatchObject({ stdout: "up\n" });
        expect(await provider.stop(undone, "force", soon())).toMatchObject({ state: "absent" });
        expect(await provider.removeDisk(undone, soon())).toMatchObject({ state: "absent" });
        const found = (await provider.discover(soon())).map(({ ref }) => ref.sandboxId);
        expect([...new Set(found)]).toEqual([finished.sandboxId]);
      },
      TIMEOUT_MS,
    );
  }

  test(
    "a container that was made and not started is not started without its directory",
    async () => {
      const ref = machine.own(machine.newRef());
      await launchAndDie(machine, ref, 5);
      rmSync(dirname(identityFile(ref)), { recursive: true });
      const { provider } = machine;
      await expect(provider.launch(ref, machine.plan({}), soon())).rejects.toMatchObject({
        code: "launch_failed",
        message: expect.stringContaining("is gone"),
      });
      expect((await provider.observe(ref, soon())).detail).toContain("is made and not started yet");
      expect(await provider.stop(ref, "graceful", soon())).toMatchObject({
        proof: "exited",
        detail: expect.stringContaining("was never started, and is removed"),
      });
    },
    TIMEOUT_MS,
  );

  test(
    "scenario 39: what only looks like ours is not listed, blocks its name, and is never touched",
    async () => {
      const ref = machine.newRef();
      const image = machine.daemon.images.busybox;
      const body = { Image: image, Entrypoint: ["/bin/sleep", "600"], HostConfig: { NetworkMode: "none" } };
      await ask("POST", `/containers/create?name=${containerName(ref)}`, body);
      await ask("POST", `/containers/${containerName(ref)}/start`);
      try {
        const { provider } = machine;
        expect(
          (await provider.discover(soon())).filter((found) => found.ref.sandboxId === ref.sandboxId),
        ).toEqual([]);
        await expect(provider.launch(ref, machine.plan({}), soon())).rejects.toMatchObject({
          code: "already_exists",
        });
        expect(await provider.observe(ref, soon())).toMatchObject({ state: "absent" });
        expect(await provider.stop(ref, "force", soon())).toMatchObject({ state: "absent" });
        expect(await machine.inspect(ref)).toMatchObject({ State: { Running: true } });
      } finally {
        await ask("DELETE", `/containers/${containerName(ref)}?force=1`);
      }
    },
    TIMEOUT_MS,
  );

  test(
    "a container that somebody started from an image of ours has our labels, and is not ours",
    async () => {
      const ref = await machine.launch({ network: "none" });
      await ask("POST", `/commit?container=${containerName(ref)}&repo=hf-test/copy&tag=1`, {});
      const body = {
        Image: "hf-test/copy:1",
        Entrypoint: ["/bin/sleep", "600"],
        HostConfig: { NetworkMode: "none" },
      };
      await ask("POST", "/containers/create?name=a-copy", body);
      await ask("POST", "/containers/a-copy/start");
      try {
        const instances = (await machine.provider.discover(soon())).filter(({ kind }) => kind === "instance");
        expect(instances).toMatchObject([{ ref, legacy: false }]);
        await machine.clear();
        expect(await ask("GET", "/containers/a-copy/json")).toMatchObject({ State: { Running: true } });
      } finally {
        await ask("DELETE", "/containers/a-copy?force=1&v=1");
        await ask("DELETE", "/images/hf-test/copy:1");
      }
    },
    TIMEOUT_MS,
  );

  test(
    "a volume of the sandbox's name that is not ours blocks the launch and is left alone",
    async () => {
      const ref = machine.newRef();
      const Name = `hf-${ref.sandboxId}-home`;
      await ask("POST", "/volumes/create", { Name });
      try {
        await expect(machine.launch({ network: "none" }, ref)).rejects.toMatchObject({
          code: "already_exists",
        });
        await machine.clear();
        expect(await machine.leftovers()).toEqual([`volume ${Name}`]);
      } finally {
        await ask("DELETE", `/volumes/${Name}`);
      }
    },
    TIMEOUT_MS,
  );

  test(
    "what a probe that was killed left behind is removed by a later one, and not by one at the same time",
    async () => {
      const left = await machine.launch(
        { network: "none" },
        { ...machine.newRef(), installationId: "holdfast-probe" },
      );
      const { provider } = machine;
      expect((await provider.probe()).filter(({ ok }) => !ok)).toEqual([]);
      expect(await provider.observe(left, soon())).toMatchObject({ state: "running" });
      await tryLaunch(provider, Date.now() + 600_000);
      expect(await machine.leftovers()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
