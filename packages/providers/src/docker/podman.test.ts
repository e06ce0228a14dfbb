import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { SandboxSpec } from "@holdfast/protocol";
import { missingDocker } from "@holdfast/testkit";
import { containerName } from "./names.ts";
import { DockerMachine } from "./test-machine.ts";
import { killTooLate } from "./test-servers.ts";

const missing = missingDocker("podman");
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);

/** Where Podman answers otherwise than Docker; the rest is in the conformance suite. */
describe.skipIf(missing !== undefined)(`podman${missing ? ` (${missing})` : ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.open({ engine: "podman" });
  }, TIMEOUT_MS);
  afterAll(() => machine.close(), TIMEOUT_MS);
  afterEach(async () => {
    await machine.clear();
    expect(await machine.leftovers()).toEqual([]);
  }, TIMEOUT_MS);

  test(
    "what has ended may be killed, also what ends in that moment",
    async () => {
      const late = await machine.launch({ network: "none" });
      expect(await killTooLate(machine, late)).toMatchObject({ state: "absent", proof: "exited" });
      const ref = await machine.launch({ network: "none" });
      await machine.crash(ref);
      expect(await machine.provider.stop(ref, "force", soon())).toMatchObject({ proof: "exited" });
    },
    TIMEOUT_MS,
  );

  test(
    "who was killed by somebody is told so, and nobody whom the kernel may have ended for want of memory",
    async () => {
      await machine.provider.probe();
      const [killed, hungry] = [
        await machine.launch({ network: "none" }),
        await machine.launch({ network: "none", limits: { memoryMiB: 64 } }),
      ];
      await machine.crash(killed);
      expect(await machine.provider.observe(killed, soon())).toMatchObject({ cause: "killed_outside" });
      // What is in /tmp is in memory, and is nobody's: in the end nobody is left to be ended but the keeper.
      const fill = "(while :; do printf '%65536s' x; done > /tmp/fill)";
      await machine.exec(hungry, `${fill}; ${fill}; ${fill}`).catch(() => undefined);
      await machine.daemon.ask("POST", `/containers/${containerName(hungry)}/wait`);
      const seen = await machine.provider.observe(hungry, soon());
      expect(seen).toMatchObject({ proof: "exited", detail: expect.stringContaining("exit code 137") });
      expect(["oom", undefined]).toContain("cause" in seen ? seen.cause : undefined);
    },
    TIMEOUT_MS,
  );

  test(
    "the image's environment is the work's, and not the keeper's",
    async () => {
      const environment = ["PATH=/opt/tools:/bin", "HOME=/root", "TOOL=yes", "LD_PRELOAD=/none.so"];
      const changes = ['ENTRYPOINT ["/bin/false"]', ...environment.map((one) => `ENV ${one}`)];
      const image = await machine.daemon.importImage("with-environment", "debian", changes);
      const ref = await machine.launch({ image, network: "none" });
      const ran = await machine.exec(ref, 'echo "$PATH $HOME $TOOL $(id -u)"');
      expect(ran).toMatchObject({ stdout: "/home/user/.local/bin:/opt/tools:/bin /home/user yes 1000\n" });
      // The loader would complain of a library that it cannot find.
      expect(await machine.saidByKeeper(ref)).toBe("");
    },
    TIMEOUT_MS,
  );

  test(
    "a container that is started again can write to its memory, also on a read-only root",
    async () => {
      const { busybox: image } = machine.daemon.images;
      const spec: SandboxSpec = { image, network: "none", readOnly: true, tmpfs: { "/cache": 1 } };
      const ref = await machine.launch(spec);
      const writes = "touch /tmp/a /cache/a /workspace/a && echo written; touch /bin/a || echo refused";
      const stdout = "written\nrefused\n";
      expect(await machine.exec(ref, writes)).toMatchObject({ stdout });
      await machine.provider.stop(ref, "graceful", soon());
      const next = await machine.launch(spec, { ...ref, instanceId: "next", generation: 2 });
      expect(await machine.exec(next, writes)).toMatchObject({ stdout });
    },
    TIMEOUT_MS,
  );

  test(
    "network full has a way out",
    async () => {
      const ref = await machine.launch({});
      const { stdout } = await machine.exec(ref, "grep -o '^ *[a-z0-9]*:' /proc/net/dev");
      expect(String(stdout).replaceAll(/[ :]/g, "").trim().split("\n").sort()).toEqual(["eth0", "lo"]);
    },
    TIMEOUT_MS,
  );
});
