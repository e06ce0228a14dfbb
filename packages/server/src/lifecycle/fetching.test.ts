import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Readiness } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { TestWorld } from "./test-world.ts";

const MINUTE = 60_000;
let world: TestWorld;
let seen: Readiness | HoldfastError;

beforeEach(async () => {
  world = new TestWorld();
  seen = { state: "fetching", detail: { image: "large" } };
  Object.assign(world.provider, {
    prepare: async () => {
      if (seen instanceof HoldfastError) throw seen;
      return seen;
    },
  });
  await world.server.start();
});
afterEach(() => world.close());

const typesOf = async (name: string): Promise<string[]> => {
  const entries = await world.server.sandboxes.timeline(name, { since: 0, limit: 1000 });
  return entries.map(({ type }) => type);
};

test("what takes longer to fetch than a launch may take is no launch that hangs, and is told now and then", async () => {
  const { sandboxes } = world.server;
  const waiting = sandboxes.wake(await sandboxes.create({ name: "one" }));
  await world.clock.pass(5 * MINUTE);
  expect([await world.phaseOf("one"), world.provider.launches]).toEqual(["reserved", []]);
  const told = (await typesOf("one")).filter((type) => type === "fetching").length;
  expect(told).toBeWithin(15, 25);
  seen = { state: "ready" };
  await world.clock.pass(1_000);
  expect((await waiting).holding.lease?.phase).toBe("live");
  expect((await typesOf("one")).slice(-3)).toEqual(["fetched", "launching", "live"]);
  // Its deadlines began to count again.
  expect((await waiting).holding.lease?.startupDeadlineAt).toBeLessThan(world.clock.wall() + 3 * MINUTE);
});

test("what cannot be had fails the call at once, with the reason, and nothing was asked of the backend", async () => {
  const { sandboxes } = world.server;
  seen = new HoldfastError("launch_failed", "there is no such image");
  const waiting = sandboxes.wake(await sandboxes.create({ name: "one" }));
  await expect(waiting).rejects.toMatchObject({
    code: "launch_failed",
    message: expect.stringContaining("there is no such image"),
    retryable: true,
  });
  expect(world.provider.launches).toEqual([]);
});

test("a sandbox that is deleted while its image comes is gone, and another that waits is served by a new server", async () => {
  const { sandboxes } = world.server;
  const unwanted = sandboxes.wake(await sandboxes.create({ name: "unwanted" }));
  const outcome = unwanted.then(
    () => "it runs",
    (error: HoldfastError) => error.code,
  );
  await sandboxes.begin(await sandboxes.create({ name: "patient" }));
  await world.clock.pass(3 * MINUTE);
  await sandboxes.delete("unwanted", { mode: "graceful", waitMs: 0 });
  await world.clock.pass(1_000);
  expect([await outcome, await world.isGone("unwanted")]).toEqual(["gone", true]);
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  seen = { state: "ready" };
  await world.clock.until(async () => (await world.phaseOf("patient")) === "live", { withinMs: 2 * MINUTE });
});
