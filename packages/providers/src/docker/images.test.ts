import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { missingDocker } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;

describe.skipIf(missing !== undefined)(`docker: what is inside${missing ? ` (${missing})` : ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.open();
  }, TIMEOUT_MS);
  afterAll(() => machine.close(), TIMEOUT_MS);
  afterEach(async () => {
    await machine.clear();
    expect(await machine.leftovers()).toEqual([]);
  }, TIMEOUT_MS);

  test(
    "an image without any shell runs programs by their arguments",
    async () => {
      const ref = await machine.launch({ image: machine.daemon.images["shell-less"], network: "none" });
      expect(await machine.exec(ref, ["/bin/cat", "/proc/1/cmdline"])).toMatchObject({
        exitCode: 0,
        shell: "none",
        stdout: expect.stringContaining("/.holdfast/bin/keeper"),
      });
      expect(await machine.exec(ref, "echo hi")).toMatchObject({ error: { code: "unsupported" } });
    },
    TIMEOUT_MS,
  );

  test(
    "an image of one static program, without a libc, runs commands of its shell",
    async () => {
      const ref = await machine.launch({ image: machine.daemon.images.busybox, network: "none" });
      const ran = await machine.exec(
        ref,
        "pwd; whoami; id -u; touch /workspace/a ~/b /tmp/c && echo written",
      );
      expect(ran).toMatchObject({ exitCode: 0, shell: "sh", stdout: "/workspace\nuser\n1000\nwritten\n" });
    },
    TIMEOUT_MS,
  );

  test(
    "of an image only files and environment count: its entrypoint, user, health check and volumes do nothing",
    async () => {
      const image = await machine.daemon.importImage("with-everything", "debian", [
        'ENTRYPOINT ["/bin/false"]',
        'CMD ["--never"]',
        "USER root",
        "WORKDIR /nowhere",
        ...["PATH=/opt/tools:/bin", "HOME=/root", "TOOL=yes", "LD_PRELOAD=/none.so"].map(
          (one) => `ENV ${one}`,
        ),
        'HEALTHCHECK --interval=1s CMD ["/bin/touch", "/tmp/ill"]',
        "VOLUME /data",
      ]);
      const ref = await machine.launch({ image, network: "none", env: { TOOL: "mine" } });
      const command = 'echo "$PATH $HOME $TOOL $(id -u)"; ls /tmp';
      const PATH = "/home/user/.local/bin:/opt/tools:/bin";
      expect(await machine.exec(ref, command)).toMatchObject({ stdout: `${PATH} /home/user mine 1000\n` });
      // The loader would complain of a library that it cannot find.
      expect(await machine.saidByKeeper(ref)).toBe("");
      const { State } = (await machine.inspect(ref)) as { State: { Health?: unknown } };
      expect(State.Health).toBeUndefined();
    },
    TIMEOUT_MS,
  );

  test(
    "the files of workspace and home are there in the next generation, also where work had locked them",
    async () => {
      const spec = { image: machine.daemon.images.busybox, network: "none" } as const;
      const ref = await machine.launch(spec);
      const wrote = "echo one > /workspace/a; echo two > ~/b; echo gone > /tmp/c; chmod 0 ~";
      expect(await machine.exec(ref, wrote)).toMatchObject({ exitCode: 0 });
      await machine.provider.stop(ref, "graceful", AbortSignal.timeout(20_000));
      const next = await machine.launch(spec, { ...ref, instanceId: "next", generation: 2 });
      const read = await machine.exec(
        next,
        "cat /workspace/a ~/b /tmp/c 2>/dev/null; stat -c %u:%g ~ /workspace",
      );
      expect(read).toMatchObject({ stdout: "one\ntwo\n1000:1000\n1000:1000\n" });
    },
    TIMEOUT_MS,
  );

  test(
    "the secret is neither in what Docker shows of the container nor in a file that is left, and nothing of our environment is inside",
    async () => {
      process.env.HOLDFAST_TEST_CANARY = "of-the-server";
      const ref = await machine.launch({ network: "none", env: { TOKEN: "also-not-to-be-shown" } });
      const shown = JSON.stringify(await machine.inspect(ref));
      expect(`${shown} ${(await machine.exec(ref, "env")).stdout}`).not.toContain("of-the-server");
      const { secret } = machine.plan({});
      expect([secret, "also-not-to-be-shown"].filter((one) => shown.includes(one))).toEqual([]);
      const dir = join(machine.dataDir, "docker/instances", `hf-${ref.sandboxId}-g1`);
      expect([existsSync(join(dir, "run")), existsSync(join(dir, "run/boot.json"))]).toEqual([true, false]);
      const inside = await machine.exec(ref, "ls -A /.holdfast/run; cat /proc/1/environ 2>/dev/null");
      expect(inside).toMatchObject({ stdout: "" });
    },
    TIMEOUT_MS,
  );

  test(
    "work has no capability, no way to get one, a filter of system calls, and no socket of the daemon",
    async () => {
      const ref = await machine.launch({ network: "none" });
      const status = await machine.exec(
        ref,
        "grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status",
      );
      const none = "0000000000000000";
      expect(status).toMatchObject({
        stdout: `CapEff:\t${none}\nCapBnd:\t${none}\nNoNewPrivs:\t1\nSeccomp:\t2\n`,
      });
      const refusals = await machine.exec(
        ref,
        "ls /var/run/docker.sock; touch /usr/x; touch /.holdfast/bin/x; ls /.holdfast/bin/keeper",
      );
      expect(refusals).toMatchObject({ stdout: "/.holdfast/bin/keeper\n" });
    },
    TIMEOUT_MS,
  );

  test(
    "network none has a loopback device alone; full has a way out",
    async () => {
      const devices = "grep -o '^ *[a-z0-9]*:' /proc/net/dev | grep -o '[a-z0-9]*'";
      const none = await machine.launch({ network: "none" });
      expect(await machine.exec(none, devices)).toMatchObject({ stdout: "lo\n" });
      const full = await machine.launch({});
      const { stdout } = await machine.exec(full, devices);
      expect(String(stdout).trim().split("\n").sort()).toEqual(["eth0", "lo"]);
    },
    TIMEOUT_MS,
  );

  test(
    "a keeper that cannot start is a failed launch, with what it said",
    async () => {
      const bundle = join(machine.dataDir, "broken");
      cpSync(machine.bundle, bundle, { recursive: true });
      writeFileSync(join(bundle, "keeper"), "this is no program");
      const ref = machine.own(machine.newRef());
      const launch = machine
        .open({ keeperBundle: bundle })
        .launch(ref, machine.plan({}), AbortSignal.timeout(20_000));
      await expect(launch).rejects.toMatchObject({
        code: "launch_failed",
        message: expect.stringMatching(/ended before its keeper answered:\n.*keeper: file too short/),
      });
    },
    TIMEOUT_MS,
  );

  test(
    "an image that is not there is named before anything is made",
    async () => {
      const launch = machine.launch({ image: "nobody/has-it:1" });
      await expect(launch).rejects.toMatchObject({
        code: "launch_failed",
        hint: expect.stringContaining("docker pull nobody/has-it:1"),
      });
      expect(await machine.leftovers()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "limits are set, reported and met: of memory, which is told, of processes, and of processors",
    async () => {
      const ref = await machine.launch({
        network: "none",
        limits: { cpus: 0.5, memoryMiB: 128, pids: 100, required: true },
      });
      const { HostConfig } = (await machine.inspect(ref)) as { HostConfig: Record<string, unknown> };
      const bytes = 128 * 1024 * 1024;
      expect(HostConfig).toMatchObject({ Memory: bytes, MemorySwap: bytes, NanoCpus: 5e8, PidsLimit: 164 });
      expect(await machine.provider.observe(ref, AbortSignal.timeout(5_000))).toMatchObject({
        limits: { state: "enforced", detail: expect.stringContaining("pids 100, memory 128 MiB, cpus 0.5") },
      });
      // What takes too much memory is killed, said to be, and its keeper goes on.
      const eaten = await machine.exec(ref, "x=xxxxxxxx; while :; do x=$x$x; done");
      expect(eaten).toMatchObject({ signal: "SIGKILL", oomKilled: true });
      expect(await machine.exec(ref, "echo on")).toMatchObject({ stdout: "on\n" });
      // A fork bomb meets the limit, its end is the end of all of it, and the sandbox answers.
      const bombed = await machine.exec(ref, "bomb() { bomb | bomb & }; bomb; sleep 60", {
        timeoutMs: 2_000,
      });
      expect(bombed).toMatchObject({
        timedOut: true,
        stderr: expect.stringContaining("Resource temporarily unavailable"),
      });
      // Work that would take a whole processor has had to wait for its share; the file's place is that of v1 or v2.
      const busy =
        "for ((i = 0; i < 300000; i++)); do :; done; cat /sys/fs/cgroup/{cpu/,}cpu.stat 2>/dev/null";
      const ran = await onceAnswered(() => machine.exec(ref, busy));
      expect(ran.stdout).toMatch(/nr_throttled [1-9]/);
    },
    TIMEOUT_MS,
  );
});

/** What was bombed may need a moment for its last processes to be gone. */
async function onceAnswered(ask: () => Promise<Record<string, unknown>>): Promise<Record<string, unknown>> {
  for (let left = 50; ; left--) {
    const answer = await ask();
    if (answer.error === undefined || left === 0) return answer;
    await Bun.sleep(200);
  }
}
