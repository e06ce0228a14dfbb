import { afterEach, beforeEach, expect, test } from "bun:test";
import { refOf } from "./effects.ts";
import { settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const DAY = 86_400_000;
const graceful = { mode: "graceful", waitMs: 0 } as const;
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "ok",
    ({ code }) => code,
  );

test("scenario 29: a deletion is under way until there is evidence, then done, then remembered", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  const { sandboxes } = world.server;
  expect([await sandboxes.delete("one", graceful), await sandboxes.delete("one", graceful)]).toEqual([
    "deleting",
    "deleting",
  ]);
  await settled();
  expect([await codeOf(sandboxes.use("one")), await codeOf(sandboxes.stop("one"))]).toEqual([
    "deleting",
    "deleting",
  ]);
  delete world.provider.faults.stop;
  const waited = sandboxes.delete("one", { mode: "graceful", waitMs: 60_000 });
  await world.clock.pass(10_000);
  expect([await waited, await sandboxes.delete("one", graceful)]).toEqual(["gone", "gone"]);
  expect([await codeOf(sandboxes.get("one")), world.provider.leftovers()]).toEqual(["gone", []]);
});

test("scenario 30: the last evidence is written, the grave is not: another server finishes it, once", async () => {
  const { sandboxId } = await world.running("one");
  const bury = world.store.bury.bind(world.store);
  world.store.bury = () => new Promise(() => {});
  await world.server.sandboxes.delete("one", graceful);
  await settled();
  expect((await world.store.find("one"))?.sandbox).toMatchObject({ desired: "deleted", hasDisk: false });
  world.store.bury = bury;
  // It dies with its ticket.
  world.server.stop();
  world.server = world.newServer();
  const started = world.server.start();
  await world.clock.pass(61_000);
  await started;
  expect(await world.isGone("one")).toBe(true);
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 100 });
  expect(entries.filter(({ type }) => type === "deleted")).toHaveLength(1);
});

test("scenario 32: a name that is used again goes on counting, and only when nothing of the old one is left", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.delete("one", graceful);
  await settled();
  expect(await codeOf(world.server.sandboxes.create({ name: "one" }))).toBe("already_exists");
  delete world.provider.faults.stop;
  await world.clock.until(() => world.isGone("one"), { withinMs: 60_000 });
  const { sandbox, lease } = await world.running("one");
  expect([sandbox.generation, lease.fence]).toEqual([2, 2]);
  expect(await codeOf(world.server.sandboxes.use("one", { generation: 1 }))).toBe("state_lost");
});

test("scenario 33: force still verifies; abandon lets the next one begin, and the last is hunted on, with an audit", async () => {
  const { sandboxId, lease } = await world.running("one");
  world.provider.faults.stop = "survives";
  expect(await world.server.sandboxes.delete("one", { mode: "force", waitMs: 0 })).toBe("deleting");
  await settled();
  expect(await world.isGone("one")).toBe(false);
  await world.server.sandboxes.abandon("one", { reason: "the host burned down" });
  await settled();
  expect(await world.isGone("one")).toBe(true);
  const next = await world.running("one");
  expect(next.sandbox.generation).toBe(2);
  expect(world.provider.refs()).toHaveLength(2);
  delete world.provider.faults.stop;
  await world.clock.until(() => world.provider.refs().length === 1, { withinMs: 3_600_000 });
  expect(world.provider.refs()).toEqual([refOf(next.lease)]);
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 100 });
  expect(entries.find(({ type }) => type === "abandoned")).toMatchObject({
    actor: "operator",
    detail: { reason: "the host burned down", generation: lease.generation },
  });
  // With it its disk goes, too: the sweep knows whose it was.
  await world.clock.pass(120_000);
  expect(world.provider.leftovers().filter((what) => what.includes(sandboxId))).toEqual([]);
});

test("scenario 34: a grave is kept for longer than anything that was sent can take, and then it is forgotten", async () => {
  await world.running("one");
  await world.server.sandboxes.delete("one", graceful);
  await settled();
  world.clock.wallAheadMs += 29 * DAY;
  await world.clock.pass(600_000);
  expect(await codeOf(world.server.sandboxes.get("one"))).toBe("gone");
  world.clock.wallAheadMs += 2 * DAY;
  await world.clock.pass(600_000);
  expect(await codeOf(world.server.sandboxes.get("one"))).toBe("not_found");
});

test("scenario 34: nor is a grave forgotten while an instance of that sandbox may still run", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.delete("one", graceful);
  await world.server.sandboxes.abandon("one", { reason: "a test" });
  await settled();
  world.clock.wallAheadMs += 31 * DAY;
  await world.clock.pass(600_000);
  expect(await codeOf(world.server.sandboxes.get("one"))).toBe("gone");
  expect((await world.running("one")).sandbox.generation).toBe(2);
});
