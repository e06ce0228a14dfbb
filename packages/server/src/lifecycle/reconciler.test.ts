import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Ledger, Provider } from "@holdfast/core";
import { refOf } from "./effects.ts";
import { settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const HOUR = 3_600_000;

async function wanted(holding: Ledger, desired: "stopped" | "deleted"): Promise<void> {
  const now = await world.store.ledger(holding.sandboxId);
  if (now === undefined || (await world.store.save(now, { sandbox: { desired } })) === undefined)
    throw new Error("it moved on");
}

test("a stop that hangs holds up nobody else's", async () => {
  const [stuck, other] = [await world.running("stuck"), await world.running("other")];
  const letGo = Promise.withResolvers<void>();
  const stop = world.provider.stop.bind(world.provider);
  world.provider.stop = async (ref) => {
    if (ref.sandboxId === stuck.sandboxId) await letGo.promise;
    return stop(ref);
  };
  await wanted(stuck, "deleted");
  world.server.reconciler.kick(stuck.sandboxId);
  await settled();
  expect(await world.phaseOf("stuck")).toBe("stopping");
  await wanted(other, "deleted");
  world.server.reconciler.kick(other.sandboxId);
  await settled();
  expect([await world.isGone("other"), await world.isGone("stuck")]).toEqual([true, false]);
  letGo.resolve();
  await settled();
  expect(await world.isGone("stuck")).toBe(true);
});

test("a store that cannot be read for a while does not end the loop", async () => {
  const holding = await world.running("one", { onIdle: "remove", lifetimeSeconds: 60 });
  world.provider.keeperOf(refOf(holding.lease)).idleForMs = HOUR;
  let failures = 3;
  const takeDue = world.store.takeDue.bind(world.store);
  world.store.takeDue = async (options) => {
    if (failures-- > 0) throw new Error("disk I/O error");
    return takeDue(options);
  };
  await world.clock.until(() => world.isGone("one"), { withinMs: 2 * 60_000 });
  expect(failures).toBeLessThan(0);
});

test("a deletion whose first pass failed is finished by the loop, and not as fast as it can", async () => {
  await world.running("one");
  await world.server.sandboxes.stop("one");
  const ledger = world.store.ledger.bind(world.store);
  let reads = 0;
  world.store.ledger = async () => {
    reads++;
    throw new Error("disk I/O error");
  };
  const asked = world.server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 });
  expect(await asked.catch(String)).toContain("disk I/O error");
  await world.clock.pass(10_000);
  expect(reads).toBeWithin(2, 15);
  world.store.ledger = ledger;
  await world.clock.until(() => world.isGone("one"), { withinMs: 10_000 });
});

test("force that is asked for later does not wait for the next graceful attempt", async () => {
  await world.running("one");
  world.provider.faults.stop = "fails";
  expect(await world.server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 })).toBe("deleting");
  await settled();
  const modes: string[] = [];
  const stop = world.provider.stop.bind(world.provider);
  delete world.provider.faults.stop;
  const seam: Provider = world.provider;
  seam.stop = async (ref, mode) => {
    modes.push(mode);
    return stop(ref);
  };
  await world.server.sandboxes.delete("one", { mode: "force", waitMs: 0 });
  await settled();
  expect({ modes, gone: await world.isGone("one") }).toEqual({ modes: ["force"], gone: true });
});

test("scenario 52: a clock that is put back by a year delays nothing", async () => {
  await world.running("one");
  world.provider.faults.stop = "fails";
  await world.server.sandboxes.stop("one");
  const attempts = async () => (await world.store.find("one"))?.lease?.attempts ?? 0;
  await world.clock.until(async () => (await attempts()) > 2, { withinMs: 60_000 });
  world.clock.wallAheadMs -= 365 * 24 * HOUR;
  delete world.provider.faults.stop;
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 60_000 });
});

test("scenario 52: a clock that is put on by an hour ends no turn early, not even for a call just then", async () => {
  await world.running("one", { persistent: false, turnTimeoutSeconds: 600 });
  await world.server.turns.begin("one", {});
  await world.clock.pass(1_000);
  world.clock.wallAheadMs += HOUR;
  await world.server.reconciler.settle((await world.server.sandboxes.get("one")).sandboxId);
  await world.clock.pass(300_000);
  expect(await world.phaseOf("one")).toBe("live");
  await world.clock.until(() => world.isGone("one"), { withinMs: 400_000 });
});

test("scenario 52: a clock that is put back by an hour is noticed once, however many calls come just then", async () => {
  await world.running("one", { persistent: false, turnTimeoutSeconds: 600 });
  await world.server.turns.begin("one", {});
  await world.clock.pass(1_000);
  world.clock.wallAheadMs -= HOUR;
  const { sandboxId } = await world.server.sandboxes.get("one");
  const calls = ["other", "another", sandboxId].map((id) => world.server.reconciler.settle(id));
  await world.clock.pass(300_000);
  await Promise.all(calls);
  expect(await world.phaseOf("one")).toBe("live");
});

test("scenario 52: a clock that is put back by a year does not put off the probe of a backend that is away", async () => {
  await world.running("one", { onIdle: "keep" });
  world.provider.faults.backend = "unreachable";
  await world.clock.pass(10 * 60_000);
  world.clock.wallAheadMs -= 365 * 24 * HOUR;
  delete world.provider.faults.backend;
  await world.clock.pass(3 * 60_000);
  await world.server.sandboxes.create({ name: "two" });
});

test("L4: a line that breaks again and again is sought with backoff", async () => {
  const { lease, sandboxId } = await world.running("one");
  const save = world.store.save.bind(world.store);
  world.store.save = async (before, change, ticket) => {
    const saved = await save(before, change, ticket);
    if (change.entries?.[0]?.type === "adopted") queueMicrotask(() => world.cutLines(lease));
    return saved;
  };
  world.cutLines(lease);
  await world.clock.pass(10_000);
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 1_000 });
  expect(entries.filter(({ type }) => type === "adopted").length).toBeWithin(3, 8);
  expect(await world.phaseOf("one")).toBe("live");
});

test("a start that loses against a stop is told so", async () => {
  await world.running("one");
  await world.server.sandboxes.stop("one");
  const launching = Promise.withResolvers<void>();
  const launch = world.provider.launch.bind(world.provider);
  world.provider.launch = async (...args) => {
    await launching.promise;
    return launch(...args);
  };
  const started = world.server.sandboxes.start("one").catch((error) => error);
  await settled();
  const stopping = world.server.sandboxes.stop("one");
  await settled();
  launching.resolve();
  expect(await started).toMatchObject({
    code: "wrong_state",
    message: expect.stringContaining("was stopped while"),
  });
  expect((await stopping).lease).toBeUndefined();
});

test("a creation that nobody waits for survives a crash right after its answer", async () => {
  await world.server.sandboxes.create({ name: "one" });
  expect(await world.phaseOf("one")).toBe("reserved");
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  expect(await world.phaseOf("one")).toBe("live");
});
