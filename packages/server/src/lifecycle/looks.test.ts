import { afterEach, beforeEach, expect, test } from "bun:test";
import { refOf } from "./effects.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "ok",
    ({ code }) => code,
  );
const generation = async () => (await world.store.find("one"))?.sandbox.generation;

test("a look at one that has just died starts nothing", async () => {
  const { lease } = await world.running("one");
  world.provider.kill(refOf(lease));
  expect(await codeOf(world.server.sandboxes.look("one"))).toBe("wrong_state");
  expect(await generation()).toBe(1);
});

test("neither a look nor work on what runs inside starts again what somebody has just stopped", async () => {
  const { sandboxes } = world.server;
  const { sandboxId, version } = await world.running("one");
  const holding = await world.store.holding(sandboxId);
  if (holding?.version !== version) throw new Error("it does not rest");
  await world.store.save(holding, { sandbox: { desired: "stopped" } });
  const asked = [sandboxes.look("one"), sandboxes.useRunning("one", {})];
  expect(await Promise.all(asked.map(codeOf))).toEqual(["wrong_state", "wrong_state"]);
  await sandboxes.stop("one");
  expect([await generation(), await world.phaseOf("one")]).toEqual([1, undefined]);
});

test("a look waits for the line to a keeper that runs", async () => {
  const { lease } = await world.running("one");
  await world.clock.pass(1_000);
  world.cutLines(lease);
  expect(await codeOf(world.server.sandboxes.look("one"))).toBe("ok");
  expect(await generation()).toBe(1);
});
