import { afterEach, beforeEach, expect, test } from "bun:test";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const types = async () =>
  (await world.server.sandboxes.timeline("one", { since: 0, limit: 99 })).map(({ type, cause }) =>
    cause === undefined ? type : `${type}: ${cause}`,
  );
/** What the backend holds, seen from outside. */
const seen = async () => {
  const [ref] = world.provider.refs();
  return ref && (await world.provider.observe(ref));
};

test("a paused one is resumed by the next use, as the same instance, and its idle time begins anew", async () => {
  const { sandboxes } = world.server;
  await world.running("one", { lifetimeSeconds: 60 });
  const paused = await sandboxes.pause("one");
  expect(paused.lease?.phase).toBe("paused");
  expect(await seen()).toMatchObject({ isPaused: true });
  expect(await sandboxes.pause("one")).toMatchObject({ lease: { phase: "paused" } });
  await expect(sandboxes.look("one")).rejects.toMatchObject({
    code: "wrong_state",
    hint: expect.stringContaining("resume"),
  });
  await world.clock.pass(50_000);
  expect((await sandboxes.use("one", { generation: 1 })).holding.lease?.phase).toBe("live");
  expect(await seen()).not.toHaveProperty("isPaused");
  await world.clock.pass(50_000);
  expect(await world.phaseOf("one")).toBe("live");
  await sandboxes.pause("one");
  expect((await sandboxes.resume("one")).sandbox.generation).toBe(1);
  expect((await sandboxes.resume("one")).lease?.phase).toBe("live");
  expect(await types()).toEqual([
    ...["created", "launching", "live"],
    ...["pausing", "paused: pause_requested", "resumed", "pausing", "paused: pause_requested", "resumed"],
  ]);
});

test("one that stays paused is idle: it is stopped, and a next use starts it", async () => {
  await world.running("one", { lifetimeSeconds: 60 });
  await world.server.sandboxes.pause("one");
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 120_000 });
  expect((await world.store.find("one"))?.sandbox.lastDeath).toMatchObject({ cause: "idle" });
  await expect(world.server.sandboxes.resume("one")).rejects.toMatchObject({ code: "wrong_state" });
  expect((await world.server.sandboxes.use("one")).holding.sandbox.generation).toBe(2);
});

test("a restarted server finds it paused, and finishes a pause that was cut off", async () => {
  const { lease } = await world.running("one");
  await world.running("two");
  await world.server.sandboxes.pause("one");
  const two = await world.store.find("two");
  if (two?.lease === undefined) throw new Error("it has no instance");
  await world.server.close();
  await world.store.save(two, { leases: { [two.lease.instanceId]: { phase: "pausing" } } });
  world.server = world.newServer();
  await world.server.start();
  expect([await world.phaseOf("one"), await world.phaseOf("two")]).toEqual(["paused", "paused"]);
  expect((await world.server.sandboxes.use("one")).holding.lease?.instanceId).toBe(lease.instanceId);
});

test("what somebody else pauses, resumes or ends shows at the next look", async () => {
  const { lease } = await world.running("one");
  const ref = { ...lease, installationId: "ours" };
  await world.provider.pause(ref);
  world.cutLines(ref);
  await world.server.reconciler.settle(lease.sandboxId);
  expect(await world.phaseOf("one")).toBe("paused");
  await world.provider.resume(ref);
  await world.server.look(lease.sandboxId);
  expect(await world.phaseOf("one")).toBe("live");
  await world.server.sandboxes.pause("one");
  world.provider.kill(ref);
  await world.server.look(lease.sandboxId);
  expect(await world.phaseOf("one")).toBeUndefined();
  expect(await types()).toContain("paused: paused_outside");
  expect(await types()).toContain("resumed: resumed_outside");
});

test("a pause that does not work is given up, and it runs on", async () => {
  await world.running("one");
  world.provider.faults.pause = "fails";
  const pausing = world.server.sandboxes.pause("one");
  await world.clock.until(async () => (await types()).includes("pause_failed: pause_failed"), {
    withinMs: 60_000,
  });
  await pausing.catch(() => undefined);
  expect(await world.phaseOf("one")).toBe("live");
  expect((await world.server.sandboxes.use("one")).holding.sandbox.generation).toBe(1);
});

test("stop, deletion and a provider that cannot pause", async () => {
  const { sandboxes } = world.server;
  await world.running("one");
  await sandboxes.pause("one");
  expect((await sandboxes.stop("one")).lease).toBeUndefined();
  await expect(sandboxes.pause("one")).rejects.toMatchObject({ code: "wrong_state" });
  await sandboxes.start("one");
  await sandboxes.pause("one");
  expect(await sandboxes.delete("one", { mode: "graceful", waitMs: 10_000 })).toBe("gone");
  await world.running("two");
  Object.assign(world.provider, { pause: undefined });
  await expect(sandboxes.pause("two")).rejects.toMatchObject({ code: "unsupported" });
});

test("the deadlines of a paused one move with its policy", async () => {
  await world.running("one", { maxLifetimeSeconds: 3600 });
  await world.server.sandboxes.pause("one");
  await world.server.sandboxes.update("one", { maxLifetimeSeconds: 60 });
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 120_000 });
  expect((await world.store.find("one"))?.sandbox.lastDeath).toMatchObject({ cause: "max_lifetime" });
});
