import { afterEach, beforeEach, expect, test } from "bun:test";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "not refused",
    ({ message }) => message,
  );

test("a name that has another spec: the message says in what they differ", async () => {
  await world.running("one", { lifetimeSeconds: 60 });
  const ensure = (wanted: object) => refusal(world.server.sandboxes.ensure("one", wanted, {}));
  expect([
    await ensure({ lifetimeSeconds: 61, network: "none" }),
    await ensure({ env: { LONG: "x".repeat(100) } }),
  ]).toEqual([
    'sandbox one exists, and is another: its network is not set, asked for was "none"; its lifetimeSeconds is 60, asked for was 61',
    "sandbox one exists, and is another: env differs",
  ]);
});

test("a generation that is over: how it ended; one that it never was: which it is", async () => {
  await world.running("one");
  const remembering = (generation: number) => refusal(world.server.sandboxes.use("one", { generation }));
  expect(await remembering(7)).toBe("sandbox one is at generation 1, not 7");
  await world.server.sandboxes.stop("one");
  const ended = new Date(world.clock.wall()).toISOString();
  expect(await remembering(1)).toBe(`generation 1 of sandbox one has ended (stop_requested, at ${ended})`);
});
