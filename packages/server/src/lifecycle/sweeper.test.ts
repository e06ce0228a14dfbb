import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { InstanceRef } from "@holdfast/core";
import { refOf } from "./effects.ts";
import { settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

// Days pass in some of them, which takes a second on a machine that does nothing else.
setDefaultTimeout(120_000);

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const MINUTE = 60_000;

/** An instance that no row knows. */
async function plant(over: Partial<InstanceRef> = {}, lifetimeSeconds = 1_800): Promise<InstanceRef> {
  const ref = { installationId: "ours", sandboxId: "lost", instanceId: "planted", generation: 1, ...over };
  const plan = { spec: {}, hostname: "h", secret: "s", lifetimeSeconds, fence: ref.generation };
  await world.provider.launch(ref, plan);
  return ref;
}

const runs = (ref: InstanceRef) =>
  world.provider.refs().some(({ instanceId }) => instanceId === ref.instanceId);

async function timeline(sandboxId: string): Promise<string[]> {
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 100 });
  return entries.map(({ type, cause }) => (cause === undefined ? type : `${type} (${cause})`));
}

test("scenario 38: an orphan of 1.9 lifetimes is kept, of 2.1 removed, through a ledger row", async () => {
  const orphan = await plant();
  await world.clock.pass(57 * MINUTE);
  expect(runs(orphan)).toBe(true);
  await world.clock.pass(6 * MINUTE);
  expect(runs(orphan)).toBe(false);
  expect(await world.store.leasesOf("fake")).toMatchObject([
    { instanceId: "planted", origin: "orphan", phase: "gone", evidence: { kind: "exited" } },
  ]);
  expect(await timeline("lost")).toContain("gone (orphan)");
});

test("scenario 35: a list that failed, or came only in part, ends nothing", async () => {
  const orphan = await plant();
  const kept = await world.running("kept");
  world.provider.faults.discover = "fails";
  await world.clock.pass(3 * 60 * MINUTE);
  expect([runs(orphan), runs(refOf(kept.lease))]).toEqual([true, true]);
  expect(await timeline("lost")).toEqual([]);
});

test("scenario 36: rows that cannot be read end nothing", async () => {
  const orphan = await plant();
  const leasesOf = world.store.leasesOf.bind(world.store);
  world.store.leasesOf = async () => Promise.reject(new Error("disk I/O error"));
  await world.clock.pass(3 * 60 * MINUTE);
  expect(runs(orphan)).toBe(true);
  world.store.leasesOf = leasesOf;
  await world.clock.pass(2 * MINUTE);
  expect(runs(orphan)).toBe(false);
});

test("scenario 39: another installation's are never touched, and counted", async () => {
  const theirs = await plant({ installationId: "theirs" });
  await world.clock.pass(24 * 60 * MINUTE);
  expect(runs(theirs)).toBe(true);
  const { providers } = await world.server.sweep({ dryRun: true });
  expect(providers).toMatchObject([{ provider: "fake", foreign: 2, actions: [] }]);
});

test("scenario 40: a legacy instance of a sandbox blocks it, is stopped, and is never used again", async () => {
  const holding = await world.running("one");
  await world.server.sandboxes.stop("one");
  const legacy = world.provider.plantLegacy(refOf(holding.lease));
  await world.clock.pass(4 * MINUTE);
  expect(runs(legacy)).toBe(false);
  expect(await timeline(holding.sandboxId)).toContain("orphan_found (orphan)");
  expect((await world.server.sandboxes.use("one")).holding.sandbox.generation).toBe(2);
});

test("scenario 41: of two for one sandbox the one without a row becomes a debt and goes; the other goes on", async () => {
  const holding = await world.running("one", { onIdle: "keep" });
  const second = await plant({ sandboxId: holding.sandboxId, generation: 0, instanceId: "second" });
  await world.clock.pass(4 * MINUTE);
  expect([runs(second), runs(refOf(holding.lease))]).toEqual([false, true]);
  expect(await world.phaseOf("one")).toBe("live");
});

test("scenario 42: restored rows take no generation twice, and what is newer blocks, waits its time, and ends", async () => {
  const holding = await world.running("one");
  await world.server.sandboxes.stop("one");
  const newer = await plant({ sandboxId: holding.sandboxId, generation: 7, instanceId: "newer" });
  await world.clock.pass(2 * MINUTE);
  expect((await world.store.find("one"))?.sandbox).toMatchObject({ generation: 7, fence: 7 });
  expect([runs(newer), await world.phaseOf("one")]).toEqual([true, "stop_due"]);
  await world.clock.pass(57 * MINUTE);
  expect(runs(newer)).toBe(true);
  await world.clock.pass(2 * MINUTE);
  expect(runs(newer)).toBe(false);
  expect((await world.server.sandboxes.use("one")).holding.sandbox.generation).toBe(8);
});

test("scenario 42: what is newer has its time also if it could not be written down at first", async () => {
  const { sandboxId } = await world.server.sandboxes.create({ name: "one" });
  const newer = await plant({ sandboxId, generation: 5 });
  const save = world.store.save.bind(world.store);
  world.store.save = async (before, change, ticket) => {
    if (change.found !== undefined) throw new Error("disk I/O error");
    return save(before, change, ticket);
  };
  await world.server.sweep({ dryRun: false }).catch(() => undefined);
  world.store.save = save;
  await world.clock.pass(57 * MINUTE);
  expect([runs(newer), (await world.store.find("one"))?.sandbox.generation]).toEqual([true, 5]);
});

test("whoever deletes a sandbox does not wait for what was left alone in case somebody needs it", async () => {
  const holding = await world.running("one");
  await world.server.sandboxes.stop("one");
  const newer = await plant({ sandboxId: holding.sandboxId, generation: 7, instanceId: "newer" });
  await world.clock.pass(2 * MINUTE);
  await world.server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 });
  await world.clock.pass(10_000);
  expect([runs(newer), await world.isGone("one")]).toEqual([false, true]);
});

test("scenario 43: the brake trips over many at once, and the next pass, which finds the same, releases it", async () => {
  /** After how many minutes the last of them is gone. */
  const endedAfter = async (count: number): Promise<number> => {
    for (let i = 0; i < count; i++) {
      world.provider.plantLegacy({
        installationId: "ours",
        sandboxId: `x${count}-${i}`,
        instanceId: "",
        generation: 1,
      });
    }
    const since = world.clock.now();
    await world.clock.until(() => world.provider.refs().length === 0, { withinMs: 90 * MINUTE });
    return Math.round((world.clock.now() - since) / MINUTE);
  };
  expect([await endedAfter(5), await endedAfter(8)]).toEqual([61, 62]);
});

test("a ghost, which came back from the dead, is stopped again, and said", async () => {
  const holding = await world.running("one");
  await world.server.sandboxes.stop("one");
  await world.clock.pass(1_000);
  const ghost = refOf(holding.lease);
  await world.provider.launch(ghost, { spec: {}, hostname: "h", secret: "s", lifetimeSeconds: 60, fence: 1 });
  await world.clock.pass(2 * MINUTE);
  expect(runs(ghost)).toBe(false);
  expect(await timeline(holding.sandboxId)).toContain("ghost_found (ghost)");
});

test("an instance that ends while a list is on its way is no ghost", async () => {
  const holding = await world.running("one");
  const discover = world.provider.discover.bind(world.provider);
  world.provider.discover = async () => {
    const found = await discover();
    await world.server.sandboxes.stop("one");
    return found;
  };
  await world.server.sweep({ dryRun: false });
  await settled();
  expect(await timeline(holding.sandboxId)).not.toContain("ghost_found (ghost)");
});

test("scenario 17: after a restart what runs is found again, the same", async () => {
  const holding = await world.running("one");
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  const { holding: after } = await world.server.sandboxes.use("one");
  expect(after.lease).toMatchObject({ instanceId: holding.lease.instanceId, generation: 1, fence: 1 });
  expect(world.provider.launches).toHaveLength(1);
  expect(await timeline(holding.sandboxId)).toContain("adopted");
});

test("a disk whose sandbox the rows have forgotten gets one again; a dry run changes nothing", async () => {
  const lost = await plant();
  await world.provider.stop(lost);
  const { providers } = await world.server.sweep({ dryRun: true });
  expect(providers[0]?.actions).toMatchObject([{ do: "recover-disk", sandboxId: "lost" }]);
  expect(await world.store.find("lost")).toBeUndefined();
  await world.server.sweep({ dryRun: false });
  expect((await world.store.find("lost"))?.sandbox).toMatchObject({ name: "recovered-lost", hasDisk: true });
});

test("one that still runs on such a disk blocks the sandbox that is made for it, and keeps its number", async () => {
  const lost = await plant({ generation: 5 });
  await world.clock.pass(2 * MINUTE);
  const launch = world.provider.launch.bind(world.provider);
  const besides: InstanceRef[] = [];
  world.provider.launch = async (...launched) => {
    besides.push(...world.provider.refs());
    return launch(...launched);
  };
  expect(runs(lost)).toBe(true);
  expect((await world.server.sandboxes.use("lost")).holding.sandbox).toMatchObject({
    name: "recovered-lost",
    generation: 6,
  });
  expect(besides).toEqual([]);
});

test("what nobody knows is not started beside itself in the first moment, either", async () => {
  await plant({ generation: 5 });
  await world.server.sweep({ dryRun: false });
  const used = world.server.sandboxes.use("lost").then(
    ({ holding }) => holding.sandbox.generation,
    ({ code }) => code,
  );
  expect(await used).toBe("not_found");
  expect(world.provider.refs()).toHaveLength(1);
});
