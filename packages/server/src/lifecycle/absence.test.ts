import { afterEach, beforeEach, expect, test } from "bun:test";
import type { KeeperControl } from "@holdfast/core";
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

test("a server that died while it gave the time back does not hold up another for longer than its ticket", async () => {
  const before = await inTurn();
  const nothing = {
    sandboxId: "absence:fake",
    sandbox: undefined,
    lease: undefined,
    debts: [],
    version: 0,
    readAt: 0,
  };
  await world.store.save(nothing, {});
  await world.store.ticket("absence:fake", { owner: "dead", ttlMs: 60_000 });
  world.clock.wallAheadMs -= HOUR;
  const look = other.sandboxes.get("one");
  await world.clock.pass(70_000);
  await look;
  expect(Math.abs((await expiry()) - before + HOUR)).toBeLessThan(100_000);
  expect(await world.phaseOf("one")).toBe("live");
});
