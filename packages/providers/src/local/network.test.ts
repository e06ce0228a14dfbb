import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { fullNetworkProblem } from "./network.ts";
import { findByName, isAlive } from "./processes.ts";

const asRoot = process.getuid?.() === 0;
const isFull = fullNetworkProblem() === undefined;

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

test.if(asRoot && isFull)(
  "full reaches what is beyond the host and resolves names, and nothing of the host itself",
  async () => {
    const scenario = join(import.meta.dir, "../../fixtures/network-scenario.ts");
    const child = Bun.spawn(["unshare", "-n", "-m", process.execPath, scenario], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ stderr, exitCode: await child.exited }).toEqual({ stderr: "", exitCode: 0 });
    expect(JSON.parse(stdout)).toEqual({
      beyondTheRouter: "outside",
      gateway: "nobody",
      loopback: "nobody",
      loopback6: "nobody",
      hostAddress: "nobody",
      otherHostAddress: "nobody",
      hostAddress6: "nobody",
      hostLinkLocal: "nobody",
      name: "203.0.113.7",
      withoutNetwork: "nobody",
      twoOnOnePort: "listens listens",
    });
  },
  120_000,
);

test.if(isFull)("the sandbox outlives its network, and stop still finds everything", async () => {
  const ref = await machine.launch({ network: "full" });
  const name = `hf-${ref.sandboxId}-g1`;
  const [pasta] = (await findByName(name)).filter(({ argv }) => argv[0]?.endsWith("pasta"));
  if (pasta === undefined) throw new Error("pasta does not run");
  process.kill(pasta.pid, "SIGKILL");
  while (isAlive(pasta)) await Bun.sleep(1);
  expect((await machine.run(ref, "echo", "alive")).stdout).toBe("alive\n");
  expect((await machine.provider.stop(ref, "graceful", AbortSignal.timeout(10_000))).state).toBe("absent");
  expect(await findByName(name)).toEqual([]);
  await machine.clear();
});

test.if(isFull)("nothing of the network outlives the sandbox", async () => {
  const ref = await machine.launch({ network: "full" });
  const processes = await findByName(`hf-${ref.sandboxId}-g1`);
  expect(processes.map(({ argv }) => argv[0]?.split("/").at(-1)).sort()).toEqual(["bwrap", "ld.so", "pasta"]);
  await machine.crash(ref);
  expect((await machine.provider.observe(ref, AbortSignal.timeout(5_000))).state).toBe("absent");
  expect(processes.filter(isAlive)).toEqual([]);
  await machine.clear();
});

/** A launch on a machine where `ip` is this script. */
async function launchWith(script: string): Promise<ReturnType<Machine["newRef"]>> {
  const bin = join(machine.dir, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "ip"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const before = process.env.PATH;
  process.env.PATH = `${bin}:${before}`;
  try {
    return await machine.launch({ network: "full" });
  } finally {
    process.env.PATH = before;
  }
}

test.if(isFull)("a network that cannot be closed off from the host is never used", async () => {
  for (const script of ["echo cannot >&2; exit 2", 'test "$1" != -6 || { echo cannot >&2; exit 2; }']) {
    await expect(launchWith(script)).rejects.toMatchObject({
      code: "launch_failed",
      message: expect.stringMatching(/could not be closed off:[\s\S]*cannot/),
    });
  }
  await machine.clear();
});

test.if(isFull)("a launch is not over before its network is closed off", async () => {
  const ref = await launchWith(`sleep 0.3; exec ${Bun.which("ip")} "$@"`);
  const { stdout } = await machine.run(ref, "ip", "route", "show", "type", "unreachable");
  expect(stdout).toContain("unreachable");
  await machine.clear();
});

// On every machine: where it has what "full" needs, that is covered up for this one program.
test("without what it needs, full is refused with the remedy, and never replaced", async () => {
  const program = join(import.meta.dir, "../../fixtures/refused-network.ts");
  const coverUp = 'test ! -e /dev/net || mount -t tmpfs tmpfs /dev/net && exec "$@"';
  const inOwnMounts = [
    "unshare",
    ...(asRoot ? [] : ["--map-root-user"]),
    "--mount",
    "sh",
    "-c",
    coverUp,
    "sh",
  ];
  const child = Bun.spawn([...inOwnMounts, process.execPath, program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  expect(await new Response(child.stdout).json()).toEqual({
    code: "unsupported",
    message: expect.stringContaining('network "full" is not available here: '),
    hint: expect.stringMatching(/^Run: sudo .*network: "none"/),
    networks: ["none"],
    made: [],
  });
  expect(await child.exited).toBe(0);
});
