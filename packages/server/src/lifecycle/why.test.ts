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

const why = async () => (await world.server.why("one")).why;
const at = (ms: number) => new Date(world.clock.wall() + ms).toISOString();
/** As sentences have it. */
const clockTime = (ms: number) => at(ms).replace(/\.\d+Z$/, "Z");

test("one that lives: since when, what holds it awake, and when it would be reaped", async () => {
  const { lease } = await world.running("one", { lifetimeSeconds: 600, maxLifetimeSeconds: 6_000 });
  const keeper = world.provider.keeperOf(refOf(lease));
  keeper.idleForMs = 60_000;
  expect(await why()).toMatchObject({
    sandbox: { name: "one", state: "running", generation: 1 },
    alive: [expect.stringContaining("may be idle for 10 min")],
    heldAwakeBy: [],
    idleForSeconds: 60,
    reapsAt: at(540_000),
    endsAt: at(6_000_000),
    onIdle: "stop",
    openTurns: [],
    instance: { phase: "live", provider: "fake", generation: 1, attempts: 0 },
    debts: [],
    next: `unless it is used, it is stopped at ${clockTime(540_000)}; its files are kept`,
  });
  keeper.heldAwakeBy = ["a build"];
  await world.server.turns.begin("one", { turnId: "mine" });
  expect(await why()).toMatchObject({
    heldAwakeBy: ["turn mine is open", "a build"],
    openTurns: [{ turnId: "mine", startedAt: at(0), expiresAt: at(3_600_000) }],
    next: `whatever it does, it is stopped at ${clockTime(6_000_000)}; its files are kept`,
  });
  await world.server.sandboxes.update("one", { maxLifetimeSeconds: null });
  expect((await why()).next).toBe("nothing, while it is held awake: turn mine is open");
});

test.each([
  [{ lifetimeSeconds: 600, maxLifetimeSeconds: 60 }, "whatever it does, it is stopped at"],
  [{ lifetimeSeconds: 600, maxLifetimeSeconds: 60, onIdle: "remove" }, "whatever it does, it is removed at"],
  [{ maxLifetimeSeconds: 60, onIdle: "keep" }, "whatever it does, it is stopped at"],
  [{ lifetimeSeconds: 60, maxLifetimeSeconds: 600 }, "unless it is used, it is stopped at"],
] as const)("of idleness and a hard end, the nearer is what is told: %p", async (policy, next) => {
  await world.running("one", policy);
  expect((await why()).next).toStartWith(`${next} ${clockTime(60_000)}`);
});

test("one that is kept", async () => {
  await world.running("one", { onIdle: "keep" });
  expect((await why()).next).toBe("nothing: idleness does not end it");
});

test("a keeper that does not answer is part of the answer, and is not waited for long", async () => {
  await world.running("one");
  world.provider.keeperOf = () => {
    throw new Error("it hangs");
  };
  expect(await why()).toMatchObject({
    alive: [expect.any(String), expect.stringContaining("it hangs")],
    reapsAt: at(1_800_000),
  });
});

test("one that died: the cause, and what the next call does", async () => {
  const { lease } = await world.running("one");
  world.provider.kill(refOf(lease));
  await world.clock.pass(2_000);
  const explained = await why();
  expect(explained).toMatchObject({
    sandbox: { state: "stopped" },
    alive: [],
    heldAwakeBy: [],
    lastDeath: { cause: "keeper_lost" },
    next: "the next use starts it",
  });
  expect(explained.instance).toBeUndefined();
});

test("one that cannot be stopped: how often it was tried, and when again", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.stop("one");
  expect(await why()).toMatchObject({
    sandbox: { state: "stopping" },
    alive: [expect.stringContaining("stop_requested")],
    instance: { phase: "stop_due", attempts: 1, nextAttemptAt: at(2_000) },
    next: `attempt 2 to stop it is at ${clockTime(2_000)} (stop_requested)`,
  });
  await world.clock.until(async () => (await world.phaseOf("one")) === "quarantined", { withinMs: 600_000 });
  expect(await why()).toMatchObject({
    instance: { phase: "quarantined", attempts: 6, lastError: expect.stringContaining("still there") },
    next: expect.stringContaining("for ever"),
  });
  await world.server.sandboxes.abandon("one", { reason: "a test" });
  await settled();
  expect(await why()).toMatchObject({
    sandbox: { state: "stopped" },
    debts: [{ phase: "debt", generation: 1 }],
    next: expect.stringContaining("hunted"),
  });
});

test("one that never starts ends in failed, with the reason, after three tries and no more", async () => {
  world.provider.faults.launch = "fails";
  const { sandboxes } = world.server;
  const created = await sandboxes.create({ name: "one" });
  const codes = [await sandboxes.wake(created).catch(({ code }) => code)];
  for (let i = 0; i < 4; i++) codes.push(await sandboxes.use("one").catch(({ code }) => code));
  expect(new Set(codes)).toEqual(new Set(["launch_failed"]));
  const explained = await why();
  expect(explained).toMatchObject({
    sandbox: { state: "failed", generation: 3 },
    failure: expect.stringContaining("the image is broken"),
    next: expect.stringContaining("explicit start"),
  });
  delete world.provider.faults.launch;
  expect(await sandboxes.use("one").catch(({ code }) => code)).toBe("launch_failed");
  await sandboxes.start("one");
  expect((await why()).sandbox.state).toBe("running");
});
