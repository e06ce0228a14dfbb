import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FoundInstance, InstanceRef } from "@holdfast/core";
import { Machine } from "../../fixtures/machine.ts";
import { launchAsBefore } from "../../fixtures/older-release.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);
const nameOf = (ref: InstanceRef) => `hf-${ref.sandboxId}-g${ref.generation}`;
const dirOf = (ref: InstanceRef) => join(machine.dataDir, "instances", nameOf(ref));
const legacyOf = (ref: InstanceRef) => ({ ...ref, instanceId: `legacy:${nameOf(ref)}` });

async function instances(of = machine): Promise<FoundInstance[]> {
  return (await of.provider.discover(soon())).filter((found) => found.kind === "instance");
}

test("a launched instance carries what the sweep needs to know of it", async () => {
  const before = Date.now();
  const ref = await machine.launch({ network: "none" });
  const [found, ...others] = await instances();
  expect(others).toEqual([]);
  expect(found).toEqual({
    kind: "instance",
    ref,
    createdAt: expect.any(Number),
    lifetimeSeconds: 600,
    fence: 7,
    legacy: false,
  });
  expect(found?.createdAt).toBeWithin(before, Date.now() + 1);
  await machine.clear();
});

test("an instance whose directory somebody removed is found, blocks its name, and is ended", async () => {
  const ref = await machine.launch({ network: "none" });
  const found = await instances();
  rmSync(dirOf(ref), { recursive: true });
  expect(await instances()).toEqual(found);
  expect((await machine.provider.observe(ref, soon())).state).toBe("running");
  const rival = { ...ref, instanceId: "another" };
  expect((await machine.provider.stop(rival, "force", soon())).state).toBe("absent");
  const launch = machine.provider.launch(rival, machine.plan({ network: "none" }), soon());
  await expect(launch).rejects.toMatchObject({ code: "already_exists" });
  await expect(machine.provider.removeDisk(ref, soon())).rejects.toMatchObject({ code: "wrong_state" });
  expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
  await machine.clear();
});

test("an identity that makes no sense hides nothing: the keeper says who it is", async () => {
  const ref = await machine.launch({ network: "none" });
  const found = await instances();
  writeFileSync(join(dirOf(ref), "identity.json"), "{");
  expect(await instances()).toEqual(found);
  expect((await machine.run(ref, "echo", "alive")).stdout).toBe("alive\n");
  await machine.crash(ref);
  expect(await instances()).toMatchObject([{ ref: legacyOf(ref), lifetimeSeconds: null, legacy: true }]);
  await machine.clear();
  expect(machine.leftovers()).toEqual([]);
});

test("an instance of the release before is known by all its ids, and can be used and ended", async () => {
  const ref = machine.newRef();
  await launchAsBefore(machine, ref, "named");
  utimesSync(join(dirOf(ref), "identity.json"), 5, 5);
  expect(await instances()).toEqual([
    { kind: "instance", ref, createdAt: 5000, lifetimeSeconds: null, fence: null, legacy: false },
  ]);
  expect((await machine.run(ref, "echo", "alive")).stdout).toBe("alive\n");
  await machine.launch({ network: "none" }, ref);
  expect(await machine.provider.stop(ref, "graceful", soon())).toMatchObject({
    state: "absent",
    proof: "exited",
  });
  await machine.clear();
});

test("scenario 40: one with nothing but its name is seen, blocks the launch, is stopped, and never used again", async () => {
  const ref = machine.newRef();
  await launchAsBefore(machine, ref, "unmarked");
  const legacy = legacyOf(ref);
  expect(await instances()).toEqual([
    {
      kind: "instance",
      ref: legacy,
      createdAt: expect.any(Number),
      lifetimeSeconds: null,
      fence: null,
      legacy: true,
    },
  ]);
  const plan = machine.plan({ network: "none" });
  await expect(machine.provider.launch(ref, plan, soon())).rejects.toMatchObject({ code: "already_exists" });
  await expect(machine.provider.launch(legacy, plan, soon())).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await expect(machine.provider.removeDisk(ref, soon())).rejects.toMatchObject({ code: "wrong_state" });
  expect((await machine.provider.observe(legacy, soon())).state).toBe("running");
  expect((await machine.provider.stop(legacy, "graceful", soon())).state).toBe("absent");
  expect(await instances()).toEqual([]);
  expect((await machine.provider.removeDisk(ref, soon())).state).toBe("absent");
  expect(machine.leftovers()).toEqual([]);
});

test("scenario 40: also where nothing is left of it but its process", async () => {
  const ref = machine.newRef();
  const legacy = await launchAsBefore(machine, ref, "unmarked");
  rmSync(dirOf(ref), { recursive: true });
  expect(await instances()).toMatchObject([{ ref: legacy, createdAt: null, legacy: true }]);
  const launch = machine.provider.launch(ref, machine.plan({ network: "none" }), soon());
  await expect(launch).rejects.toMatchObject({ code: "already_exists" });
  expect((await machine.provider.observe(legacy, soon())).state).toBe("running");
  expect((await machine.provider.stop(legacy, "force", soon())).state).toBe("absent");
  expect(await instances()).toEqual([]);
  await machine.provider.removeDisk(ref, soon());
});

test("scenario 39: look-alikes are not found, and nothing touches them", async () => {
  const ref = machine.newRef();
  const dirs = ["hf-foo", nameOf(ref), "hf-../x-g1", "notes"].map((name) =>
    join(machine.dataDir, "instances", name.replace("/", "-")),
  );
  for (const dir of dirs) mkdirSync(dir, { recursive: true });
  const stranger = Bun.spawn(["sh", "-c", "echo; read end", nameOf(ref)], { stdin: "pipe", stdout: "pipe" });
  await stranger.stdout.getReader().read();
  expect(await instances()).toEqual([]);
  expect((await machine.provider.observe(ref, soon())).state).toBe("absent");
  expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
  const launch = machine.provider.launch(ref, machine.plan({ network: "none" }), soon());
  await expect(launch).rejects.toMatchObject({ code: "already_exists" });
  expect(dirs.map((dir) => existsSync(dir))).toEqual(dirs.map(() => true));
  expect(stranger.exitCode).toBe(null);
  stranger.stdin.end();
  await stranger.exited;
  for (const dir of dirs) rmSync(dir, { recursive: true });
});

test("an instance whose host name is another's name does not end with that one", async () => {
  const ref = machine.newRef();
  const other = await machine.launch({ network: "none" });
  const plan = { ...machine.plan({ network: "none" }), hostname: nameOf(other) };
  await machine.provider.launch(ref, plan, soon());
  await machine.provider.stop(other, "force", soon());
  expect((await machine.run(ref, "hostname")).stdout).toBe(`${nameOf(other)}\n`);
  await machine.provider.stop(ref, "force", soon());
  await machine.provider.removeDisk(ref, soon());
  await machine.clear();
});

test("scenario 39: two data dirs with the same ids do not see, adopt or end each other's instances", async () => {
  const ref = await machine.launch({ network: "none" });
  const copy = await Machine.open();
  try {
    expect(await instances(copy)).toEqual([]);
    expect((await copy.provider.observe(ref, soon())).state).toBe("absent");
    await copy.launch({ network: "none" }, ref);
    const pids = [await machine.keeperPid(ref), await copy.keeperPid(ref)];
    expect(new Set(pids).size).toBe(2);
    expect(await Promise.all([machine, copy].map(async (one) => (await instances(one)).length))).toEqual([
      1, 1,
    ]);

    // As in a copy of the original's files, which also lists its control groups.
    const file = join(copy.dataDir, "instances", nameOf(ref), "identity.json");
    writeFileSync(file, readFileSync(join(dirOf(ref), "identity.json")));
    await copy.provider.stop(ref, "force", soon());
    expect((await machine.run(ref, "echo", "alive")).stdout).toBe("alive\n");
    await copy.provider.removeDisk(ref, soon());
  } finally {
    // Both look for leftovers by the same names.
    await machine.clear();
    await copy.close();
  }
});

test("what was launched before the machine's last start is gone, and that is the proof", async () => {
  const ref = await machine.launch({ network: "none" });
  await machine.crash(ref);
  expect(await machine.provider.observe(ref, soon())).toMatchObject({ state: "absent", proof: "exited" });
  const file = join(dirOf(ref), "identity.json");
  writeFileSync(file, JSON.stringify({ ...(await Bun.file(file).json()), bootId: "of another day" }));
  const gone = { state: "absent", proof: "host_reset", detail: expect.stringContaining("started anew") };
  expect(await machine.provider.observe(ref, soon())).toMatchObject(gone);
  expect(await machine.provider.stop(ref, "force", soon())).toMatchObject(gone);
  await machine.clear();
});
