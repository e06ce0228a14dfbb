import { afterEach, beforeEach, expect, test } from "bun:test";
import type { KeeperControl } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Lifecycle } from "./lifecycle.ts";
import { TestWorld } from "./test-world.ts";

const HOUR = 3_600_000;

let world: TestWorld;
let other: Lifecycle<KeeperControl>;
beforeEach(async () => {
  world = new TestWorld({}, { sharedBy: "several" });
  other = world.newServer();
  await world.server.start();
  await other.start();
});
afterEach(async () => {
  await other.close();
  await world.close();
});

const expiry = async () => (await world.store.find("one"))?.sandbox.turns[0]?.expiresAt ?? Number.NaN;

async function inTurn(): Promise<number> {
  await world.running("one", { persistent: false });
  await world.server.turns.begin("one", {});
  await world.clock.pass(5_000);
  return expiry();
}

test.each([-HOUR, HOUR])(
  "two servers that see at once that the clock was set by %d ms give it back once",
  async (byMs) => {
    const before = await inTurn();
    world.clock.wallAheadMs += byMs;
    const looks = Promise.all([world.server.sandboxes.get("one"), other.sandboxes.get("one")]);
    await world.clock.pass(1_000);
    await looks;
    // All but the half minute that passes between two notes that somebody is there.
    expect(Math.abs((await expiry()) - before - byMs)).toBeLessThan(30_000);
    await world.clock.pass(60_000);
    expect(await world.phaseOf("one")).toBe("live");
  },
);

test("an answer that is lost after the time was given back does not give it back again", async () => {
  const before = await inTurn();
  const giveBack = world.store.giveBack.bind(world.store);
  world.store.giveBack = async (...args) => {
    world.store.giveBack = giveBack;
    await giveBack(...args);
    throw new HoldfastError("unavailable", "the connection broke before the commit was answered");
  };
  world.clock.wallAheadMs -= HOUR;
  expect(await other.sandboxes.get("one").catch(({ code }) => code)).toBe("unavailable");
  await world.clock.pass(60_000);
  expect(Math.abs((await expiry()) - before + HOUR)).toBeLessThan(30_000);
  expect(await world.phaseOf("one")).toBe("live");
});
