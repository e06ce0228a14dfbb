import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { CreateSandbox } from "@holdfast/protocol";
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

/** One whose keeper has nothing to do, and says so for as long as nothing is asked of it. */
async function idle(request: CreateSandbox = {}) {
  const holding = await world.running("one", { lifetimeSeconds: 600, ...request });
  const keeper = world.provider.keeperOf(refOf(holding.lease));
  keeper.idleForMs = 10 * 60 * MINUTE;
  return { holding, keeper };
}

const state = async () => {
  const holding = await world.store.find("one");
  return holding === undefined ? "gone" : (holding.lease?.phase ?? "stopped");
};

test("it is stopped when it was idle for its lifetime, not before, and its files are kept", async () => {
  await idle();
  await world.clock.pass(10 * MINUTE - 1_000);
  expect(await state()).toBe("live");
  await world.clock.pass(2_000);
  expect(await state()).toBe("stopped");
  expect((await world.server.sandboxes.get("one")).sandbox).toMatchObject({
    hasDisk: true,
    lastDeath: { cause: "idle" },
  });
});

test("scenario 12: a use a moment before it is due, also by another server, keeps it", async () => {
  const { holding, keeper } = await idle();
  // The rows change while the keeper is asked: its answer is about what was before.
  const save = world.store.save.bind(world.store);
  let hasUsed = false;
  world.store.save = async (before, change, ticket) => {
    if (change.entries?.[0]?.cause === "idle" && !hasUsed) {
      hasUsed = true;
      const now = await world.store.holding(holding.sandboxId);
      if (now !== undefined) await save(now, { sandbox: { lastUsedAt: world.clock.wall() } });
    }
    return save(before, change, ticket);
  };
  await world.clock.pass(11 * MINUTE);
  expect([hasUsed, await state(), keeper.quiesced]).toEqual([true, "live", false]);
  await world.clock.pass(10 * MINUTE);
  expect(await state()).toBe("stopped");
});

test("what holds it awake inside holds off the reaper for as long as it does, at one question a lifetime", async () => {
  const { keeper } = await idle();
  keeper.heldAwakeBy = ["a build"];
  keeper.idleForMs = 0;
  await world.clock.pass(24 * 60 * MINUTE);
  expect(await state()).toBe("live");
  keeper.heldAwakeBy = [];
  keeper.idleForMs = 10 * 60 * MINUTE;
  await world.clock.pass(10 * MINUTE);
  expect(await state()).toBe("stopped");
});

test("scenario 13: an open turn longer than a lifetime holds it awake, and idle counts from its end", async () => {
  await idle();
  const { turn } = await world.server.turns.begin("one", {});
  await world.clock.pass(50 * MINUTE);
  expect(await state()).toBe("live");
  await world.server.turns.end("one", turn.turnId);
  await world.clock.pass(10 * MINUTE - 1_000);
  expect(await state()).toBe("live");
  await world.clock.pass(2_000);
  expect(await state()).toBe("stopped");
});

test("scenario 14: a lifetime that is changed while it lives is in force at once, by the keeper's word", async () => {
  const { keeper } = await idle();
  await world.clock.pass(5 * MINUTE);
  await world.server.sandboxes.update("one", { lifetimeSeconds: 3_600 });
  await world.clock.pass(20 * MINUTE);
  expect(await state()).toBe("live");
  expect(keeper.admitted).toMatchObject({ lifetimeSeconds: 3_600 });
  // By the rows it is long idle; the keeper knows better.
  keeper.heldAwakeBy = ["a build"];
  await world.server.sandboxes.update("one", { lifetimeSeconds: 60 });
  await world.clock.pass(MINUTE / 2);
  expect(await state()).toBe("live");
  keeper.heldAwakeBy = [];
  await world.clock.pass(2 * MINUTE);
  expect(await state()).toBe("stopped");
});

test("what is to be kept outlives any idleness, and a hard end comes all the same", async () => {
  await idle({ onIdle: "keep", maxLifetimeSeconds: 3 * 86_400 });
  await world.clock.pass(3 * 86_400_000 - 1_000);
  expect(await state()).toBe("live");
  await world.clock.pass(2_000);
  expect(await state()).toBe("stopped");
  expect((await world.server.sandboxes.get("one")).sandbox.lastDeath).toMatchObject({
    cause: "max_lifetime",
  });
});

test("out of reach is not idle: it is sought with backoff, and stopped only when it was asked", async () => {
  const { holding } = await idle();
  const keeperOf = world.provider.keeperOf.bind(world.provider);
  world.provider.keeperOf = () => {
    throw new Error("no keeper answers");
  };
  await world.clock.pass(60 * MINUTE);
  expect(await state()).toBe("live");
  const { lease } = await world.server.sandboxes.get("one");
  expect(lease).toMatchObject({ instanceId: holding.lease.instanceId, lastError: "no keeper answers" });
  world.provider.keeperOf = keeperOf;
  await world.clock.pass(2 * MINUTE);
  expect(await state()).toBe("stopped");
});

test("scenario 15: the end of its turn removes what is not persistent, also if the server dies right after", async () => {
  await idle({ persistent: false });
  const { turn } = await world.server.turns.begin("one", {});
  world.server.stop();
  const { holding } = await world.server.turns.end("one", turn.turnId);
  expect(holding?.sandbox).toMatchObject({ turns: [], desired: "deleted", deleteReason: "turn_end" });
  await world.server.close();
  expect(await state()).toBe("live");
  world.server = world.newServer();
  await world.server.start();
  await settled();
  expect([await state(), world.provider.leftovers()]).toEqual(["gone", []]);
});

test("a turn that no call renews ends by itself, and with it what is not persistent", async () => {
  await idle({ persistent: false, turnTimeoutSeconds: 120 });
  const { turn } = await world.server.turns.begin("one", { turnId: "mine" });
  expect(await world.server.turns.begin("one", { turnId: "mine" })).toMatchObject({ turn });
  await world.clock.pass(100_000);
  await world.server.sandboxes.use("one", { turnId: "mine" });
  await world.clock.pass(100_000);
  expect(await state()).toBe("live");
  await world.clock.pass(30_000);
  expect(await state()).toBe("gone");
  const { turn: ended } = await world.server.turns.end("one", "mine");
  expect(ended).toMatchObject({ turnId: "mine", startedAt: turn.startedAt });
});

test("a turn that is over is told so, one that never was, too", async () => {
  await idle();
  const { turn } = await world.server.turns.begin("one", {});
  const first = await world.server.turns.end("one", turn.turnId);
  await world.clock.pass(1_000);
  expect((await world.server.turns.end("one", turn.turnId)).turn).toEqual(first.turn);
  const [used, ended] = await Promise.all([
    world.server.sandboxes.use("one", { turnId: turn.turnId }).catch(({ code }) => code),
    world.server.turns.end("one", "never").catch(({ code }) => code),
  ]);
  expect([used, ended]).toEqual(["wrong_state", "not_found"]);
});

test("uses are written at most every half minute, and looking never counts", async () => {
  await idle();
  const { version } = await world.server.sandboxes.get("one");
  for (let i = 0; i < 29; i++) {
    await world.clock.pass(1_000);
    await world.server.sandboxes.use("one");
    await world.server.sandboxes.look("one");
    await world.server.why("one");
  }
  expect((await world.server.sandboxes.get("one")).version).toBe(version);
  await world.clock.pass(1_000);
  await world.server.sandboxes.use("one");
  const { sandbox, lease } = await world.server.sandboxes.get("one");
  expect(sandbox.lastUsedAt).toBe(world.clock.wall());
  expect(lease?.idleCheckAt).toBe(world.clock.wall() + 600_000);
});

test("a keeper that ends by itself at its greatest age, a moment before it is told to, has reached that age", async () => {
  const { holding } = await idle({ onIdle: "remove", maxLifetimeSeconds: 60 });
  await world.clock.pass(59_000);
  world.provider.kill(refOf(holding.lease));
  await world.clock.pass(1_000);
  expect(await state()).toBe("gone");
  const events = await world.store.timeline(holding.sandboxId, { since: 0, limit: 100 });
  expect(events.filter(({ type }) => type === "gone").map(({ cause }) => cause)).toEqual(["max_lifetime"]);
});
