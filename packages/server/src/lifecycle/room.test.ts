import { afterEach, expect, test } from "bun:test";
import { refOf } from "./effects.ts";
import { settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
afterEach(() => world.close());

async function start(config: ConstructorParameters<typeof TestWorld>[0] = {}): Promise<TestWorld> {
  world = new TestWorld(config);
  await world.server.start();
  return world;
}

const refusal = (name: string, options: { queueMs?: number } = {}) =>
  world.server.sandboxes.create({ name }, options).then(
    () => undefined,
    (error) => error,
  );
const GIB = 1024 ** 3;

function freeOnDisk(freeBytes: number): void {
  const { room } = world.provider;
  world.provider.room = { ...room, disk: { ...room.disk, freeBytes } };
}

test("scenario 44: 50 at once for 10 slots are exactly 10, and the others are told the numbers", async () => {
  await start({ slots: 10 });
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => refusal(`box${i}`)));
  const refused = all.filter((error) => error !== undefined);
  expect([refused.length, (await world.store.leasesOf("fake")).length]).toEqual([40, 10]);
  for (const error of refused)
    expect(error).toMatchObject({ code: "capacity_exhausted", details: { used: 10, capacity: 10 } });
});

test("scenario 45: a place is free again exactly when its instance is gone; a quarantined one still counts", async () => {
  await start({ slots: 1, tenantQuota: 1 });
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.stop("one");
  await world.clock.until(async () => (await world.phaseOf("one")) === "quarantined", { withinMs: 600_000 });
  expect(await refusal("two")).toMatchObject({ code: "quota_exceeded", details: { used: 1, quota: 1 } });
  // A debt may still run: its host is charged for it, its tenant is not.
  await world.server.sandboxes.abandon("one", { reason: "a test" });
  await settled();
  expect(await refusal("two")).toMatchObject({ code: "capacity_exhausted", details: { resource: "slots" } });
  delete world.provider.faults.stop;
  await world.clock.until(async () => (await refusal("two")) === undefined, { withinMs: 3_600_000 });
  expect(await refusal("three")).toMatchObject({ code: "quota_exceeded" });
});

test("a place in the queue is taken when one leaves, and L3: refused by its deadline", async () => {
  await start({ slots: 1 });
  await world.running("one");
  const [second, third] = [refusal("two", { queueMs: 60_000 }), refusal("three", { queueMs: 60_000 })];
  await world.clock.pass(1_000);
  await world.server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 });
  await world.clock.pass(60_000);
  expect([await second, (await third).code]).toEqual([undefined, "capacity_exhausted"]);
});

test("many who find the disk low at once, or wait in line, make one pass over it, not one each", async () => {
  await start();
  await world.clock.pass(11_000);
  freeOnDisk(GIB);
  let lists = 0;
  const discover = world.provider.discover.bind(world.provider);
  world.provider.discover = () => {
    lists++;
    return discover();
  };
  const all = Array.from({ length: 20 }, (_, i) => refusal(`box${i}`, { queueMs: 8_000 }));
  await world.clock.pass(9_000);
  expect(new Set((await Promise.all(all)).map(({ code }) => code))).toEqual(new Set(["capacity_exhausted"]));
  expect(lists).toBe(1);
});

test("scenario 46: a low disk is cleared of what nobody owns, measured again, and refused with the numbers", async () => {
  await start();
  await world.running("kept");
  const doomed = await world.running("doomed");
  await world.server.sandboxes.delete("doomed", { mode: "graceful", waitMs: 0 });
  await settled();
  // One that is not known here, and a disk that came back after its sandbox was deleted.
  world.provider.plantLegacy({ ...refOf(doomed.lease), sandboxId: "unknown" });
  const before = world.provider.leftovers();
  const late = { ...refOf(doomed.lease), instanceId: "late", generation: 9 };
  await world.provider.launch(late, { spec: {}, hostname: "h", secret: "s", lifetimeSeconds: 60, fence: 9 });
  await world.provider.stop(late);
  expect(world.provider.leftovers()).not.toEqual(before);
  await world.clock.pass(11_000);
  freeOnDisk(GIB);
  expect(await refusal("more")).toMatchObject({
    code: "capacity_exhausted",
    details: { resource: "disk", freeBytes: GIB, neededBytes: 10 * GIB },
  });
  // What is unknown, or too young to tell, or in use, is as it was.
  expect(world.provider.leftovers()).toEqual(before);
  expect(await world.phaseOf("kept")).toBe("live");
  freeOnDisk(50 * GIB);
  expect(await refusal("more")).toBeUndefined();
});

test("scenario 47: what cannot be measured is refused, and nothing is destroyed", async () => {
  await start();
  await world.running("kept");
  world.provider.plantLegacy({ installationId: "ours", sandboxId: "lost", instanceId: "", generation: 1 });
  const before = world.provider.leftovers();
  world.provider.faults.capacity = "unknown";
  await world.clock.pass(11_000);
  expect(await refusal("more")).toMatchObject({ code: "capacity_unknown", started: "no" });
  expect(world.provider.leftovers()).toEqual(before);
  expect(await world.phaseOf("kept")).toBe("live");
});

test("scenario 47: a disk that an operation found full closes the host to new ones; siblings go on; room reopens it", async () => {
  await start();
  await world.running("kept");
  world.provider.faults.launch = "diskFull";
  const failed = await world.server.sandboxes
    .wake(await world.server.sandboxes.create({ name: "full" }))
    .catch((error) => error);
  expect(failed).toMatchObject({ code: "launch_failed" });
  freeOnDisk(GIB);
  delete world.provider.faults.launch;
  await world.clock.pass(11_000);
  expect(await refusal("more")).toMatchObject({ code: "host_storage_unusable" });
  expect(await world.phaseOf("kept")).toBe("live");
  freeOnDisk(50 * GIB);
  await world.clock.pass(11_000);
  expect(await refusal("more")).toBeUndefined();
});

test("nothing is launched before it is known what is there", async () => {
  world = new TestWorld();
  world.provider.faults.discover = "fails";
  await world.server.start();
  expect(await refusal("one")).toMatchObject({ code: "provider_unavailable", started: "no" });
  delete world.provider.faults.discover;
  await world.clock.pass(61_000);
  expect(await refusal("one")).toBeUndefined();
});
