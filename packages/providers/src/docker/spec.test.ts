import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import type { SandboxSpec } from "@holdfast/protocol";
import { missingDocker } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);

describe.skipIf(missing !== undefined)(
  `docker: what a spec asks for${missing ? ` (${missing})` : ""}`,
  () => {
    let machine: DockerMachine;
    let shared: string;
    beforeAll(async () => {
      machine = await DockerMachine.open();
      shared = mkdtempSync(join(tmpdir(), "holdfast-shared-"));
      for (const dir of ["read", "write"]) mkdirSync(join(shared, dir));
      chmodSync(shared, 0o755);
      chmodSync(join(shared, "write"), 0o777);
      writeFileSync(join(shared, "read/note"), "of the host\n");
    }, TIMEOUT_MS);
    afterAll(async () => {
      rmSync(shared, { recursive: true });
      await machine.close();
    }, TIMEOUT_MS);
    afterEach(async () => {
      await machine.clear();
      expect(await machine.leftovers()).toEqual([]);
    }, TIMEOUT_MS);

    /** Runs one command in a sandbox of its own. */
    async function run(spec: SandboxSpec, command: string): Promise<string> {
      const ref = await machine.launch({ network: "none", ...spec });
      return String((await machine.exec(ref, command)).stdout);
    }

    test(
      "work runs as a user of the image, by name or by id, and owns what it needs",
      async () => {
        const image = await machine.daemon.importImage("with-user", "busybox", ["USER 1234"]);
        const command = "id -u; id -g; echo $USER $HOME; touch ~/a /workspace/a /tmp/a && echo written";
        expect(await run({ image }, command)).toBe("1000\n1000\nuser /home/user\nwritten\n");
        expect(await run({ image, user: "4000:4001" }, command)).toBe(
          "4000\n4001\nuser /home/user\nwritten\n",
        );
        expect(await run({ image, user: "4000" }, command)).toBe("4000\n4000\nuser /home/user\nwritten\n");
        await expect(machine.launch({ image, user: "nobody-here" })).rejects.toMatchObject({
          code: "launch_failed",
          message: "the image has no user nobody-here",
        });
      },
      TIMEOUT_MS,
    );

    test(
      "root is root of its own files, with a few capabilities and no way to more, and cannot open its directory to others",
      async () => {
        const { busybox: image } = machine.daemon.images;
        const ref = await machine.launch({ image, network: "none", user: "root" });
        const status = await machine.exec(
          ref,
          "id -u; echo $USER; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; touch /bin/new && stat -c %u /bin/new",
        );
        // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID
        expect(status).toMatchObject({
          stdout: "0\nroot\nCapEff:\t00000000000000fb\nNoNewPrivs:\t1\nSeccomp:\t2\n0\n",
        });
        expect(await machine.exec(ref, "chmod 777 /.holdfast/run")).toMatchObject({ exitCode: 0 });
        expect(asNobody(join(runDirOf(ref), "run"))).toContain("Permission denied");
      },
      TIMEOUT_MS,
    );

    function runDirOf(ref: InstanceRef): string {
      return join(machine.dataDir, "docker/instances", `hf-${ref.sandboxId}-g1`);
    }

    test(
      "a read-only file system leaves the disk and memory to write to, also in the next generation",
      async () => {
        const { busybox: image } = machine.daemon.images;
        const spec: SandboxSpec = { image, network: "none", readOnly: true, tmpfs: { "/cache": 1 } };
        const ref = await machine.launch(spec);
        const writes =
          "for d in /workspace ~ /tmp /cache /bin /etc /; do touch $d/x 2>/dev/null && echo $d; done; stat -c %u ~";
        const stdout = "/workspace\n/home/user\n/tmp\n/cache\n1000\n";
        expect(await machine.exec(ref, writes)).toMatchObject({ stdout });
        expect(await machine.exec(ref, "head -c 2000000 /dev/zero > /cache/big || echo full")).toMatchObject({
          stdout: "full\n",
        });
        expect(await machine.exec(ref, "chmod 0 ~")).toMatchObject({ exitCode: 0 });
        await machine.provider.stop(ref, "graceful", soon());
        const next = await machine.launch(spec, { ...ref, instanceId: "next", generation: 2 });
        expect(await machine.exec(next, writes)).toMatchObject({ stdout });
      },
      TIMEOUT_MS,
    );

    test(
      "of the host it sees what the operator allowed, and writes where that was allowed, too",
      async () => {
        const allowedMounts = [
          { dir: join(shared, "read"), readOnly: true },
          { dir: join(shared, "write"), readOnly: false },
        ];
        const provider = machine.open({ allowedMounts });
        expect(provider.capabilities.mounts).toEqual([`${join(shared, "read")}:ro`, join(shared, "write")]);
        const ref = machine.own(machine.newRef());
        const mounts = [
          { source: join(shared, "read"), target: "/data" },
          { source: join(shared, "write"), target: "/workspace/out", writable: true },
        ];
        await provider.launch(ref, machine.plan({ network: "none", mounts }), soon());
        const ran = await machine.exec(
          ref,
          "cat /data/note; touch /data/x 2>/dev/null || echo refused; echo made > /workspace/out/made",
        );
        expect(ran).toMatchObject({ exitCode: 0, stdout: "of the host\nrefused\n" });
        expect(await Bun.file(join(shared, "write/made")).text()).toBe("made\n");
        await expect(machine.launch({ mounts })).rejects.toMatchObject({ code: "forbidden" });
      },
      TIMEOUT_MS,
    );

    test(
      "gVisor as the runtime: the work runs on its kernel, not on the host's",
      async () => {
        const { busybox: image } = machine.daemon.images;
        await machine.provider.probe();
        expect(machine.provider.capabilities.runtimes).toEqual(["runc", "runsc"]);
        const command = "dmesg | head -n 1; touch /workspace/a && echo written";
        expect(await run({ image, runtime: "runsc" }, command)).toMatch(/Starting gVisor.*\nwritten\n$/);
      },
      TIMEOUT_MS,
    );

    test(
      "a runtime that the daemon does not know is refused with those that it knows, and a disk limit is never ignored",
      async () => {
        await expect(machine.launch({ runtime: "nothing" })).rejects.toMatchObject({
          code: "unsupported",
          hint: expect.stringContaining("runc"),
        });
        await expect(machine.launch({ limits: { diskMiB: 64, required: true } })).rejects.toMatchObject({
          code: "unsupported",
          message: expect.stringMatching(/Docker cannot limit volumes \(its storage here is \w+ on \w+\)/),
        });
        const ref = await machine.launch({ network: "none", runtime: "runc", limits: { diskMiB: 64 } });
        expect(await machine.provider.observe(ref, soon())).toMatchObject({
          limits: { state: "partial", detail: expect.stringContaining("not the disk: ") },
        });
      },
      TIMEOUT_MS,
    );
  },
);

/** What somebody without rights on the host is told. */
function asNobody(dir: string): string {
  const user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
  return Bun.spawnSync([...user, "ls", dir]).stderr.toString();
}
