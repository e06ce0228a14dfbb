import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { createLocalProvider } from "../index.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const asRoot = process.getuid?.() === 0;

/** The probe of a machine where bubblewrap is this script. */
async function probeWith(script: string) {
  const bin = join(machine.dir, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "bwrap"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, "bwrap"), 0o755);
  const before = process.env.PATH;
  process.env.PATH = `${bin}:${before}`;
  try {
    return (await machine.open().probe()).filter(({ ok }) => !ok);
  } finally {
    process.env.PATH = before;
  }
}

test("a machine that has everything says so, what is missing has a remedy, and the capabilities follow", async () => {
  const provider = createLocalProvider({ dataDir: machine.dataDir, keeperBundle: machine.bundle });
  expect(provider.capabilities.limits).toMatchObject({ enforced: false, detail: "not probed yet" });
  const checks = await provider.probe();
  const isOk = new Map(checks.map(({ name, ok }) => [name, ok]));
  expect(checks.filter(({ ok, required }) => required && !ok)).toEqual([]);
  for (const check of checks.filter(({ ok }) => !ok)) expect(check.remedy).toMatch(/\w/);
  expect(isOk.get('network "full"')).toBe(provider.capabilities.networks.includes("full"));
  expect(isOk.get("limits")).toBe(provider.capabilities.limits.enforced);
});

test("a machine that forbids namespaces is refused with what it said and a remedy", async () => {
  const failed = await probeWith("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1");
  expect(failed.filter(({ required }) => required)).toEqual([
    {
      name: "user namespaces",
      ok: false,
      required: true,
      detail: "bwrap: setting up uid map: Permission denied",
      remedy: expect.stringMatching(/namespaces|AppArmor|sysctl/),
    },
  ]);
});

test("a bubblewrap that is too old is named as such", async () => {
  const failed = await probeWith("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1");
  expect(failed.find(({ required }) => required)?.remedy).toBe("Install bubblewrap 0.8 or newer");
});

test("a bundle that is not there fails the check, and the launch with how to build it", async () => {
  const provider = createLocalProvider({
    dataDir: machine.dataDir,
    keeperBundle: join(machine.dir, "nothing"),
  });
  expect(
    (await provider.probe()).filter(({ ok, required }) => required && !ok).map(({ name }) => name),
  ).toEqual(["keeper"]);
  const launch = provider.launch(
    machine.newRef(),
    machine.plan({ network: "none" }),
    AbortSignal.timeout(5_000),
  );
  await expect(launch).rejects.toMatchObject({
    code: "launch_failed",
    hint: expect.stringContaining("npm run"),
  });
});

test.if(asRoot)("a data dir that the sandboxes' users cannot reach fails the check", async () => {
  const closed = join(machine.dir, "closed");
  mkdirSync(closed, { mode: 0o700 });
  const provider = createLocalProvider({ dataDir: join(closed, "data"), keeperBundle: machine.bundle });
  expect((await provider.probe()).find(({ ok, required }) => required && !ok)?.remedy).toContain(
    "/var/lib/holdfast",
  );
});

test("an instance that cannot start says why", async () => {
  const bundle = join(machine.dir, "broken");
  mkdirSync(join(bundle, "lib"), { recursive: true });
  writeFileSync(join(bundle, "ld.so"), "#!/bin/sh\necho broken keeper >&2\n", { mode: 0o755 });
  writeFileSync(join(bundle, "keeper"), "");
  const provider = createLocalProvider({ dataDir: machine.dataDir, keeperBundle: bundle });
  const ref = machine.newRef();
  const launch = provider.launch(ref, machine.plan({ network: "none" }), AbortSignal.timeout(5_000));
  await expect(launch).rejects.toMatchObject({
    code: "launch_failed",
    message: expect.stringContaining("broken keeper"),
  });
  await provider.stop(ref, "force", AbortSignal.timeout(5_000));
  await provider.removeDisk(ref, AbortSignal.timeout(5_000));
});
