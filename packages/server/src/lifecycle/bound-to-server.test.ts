import { afterEach, beforeEach, expect, test } from "bun:test";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const ends = { persistAcrossRestarts: false };
const death = async (name: string) => (await world.store.find(name))?.sandbox.lastDeath?.cause;

test("what is bound to its server ends with it, and the others run on", async () => {
  await world.running("one", ends);
  await world.running("two");
  await world.server.endBound({ ms: 10_000 });
  await world.server.close();
  expect([await world.phaseOf("one"), await world.phaseOf("two")]).toEqual([undefined, "live"]);
  expect(await death("one")).toBe("server_ended");
});

test("after a crash it is ended by the next server instead of adopted, and started again by a use", async () => {
  const { lease } = await world.running("one", ends);
  const { lease: kept } = await world.running("two");
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  expect(await death("one")).toBe("server_restarted");
  expect(world.provider.refs().map(({ instanceId }) => instanceId)).toEqual([kept.instanceId]);
  const { holding } = await world.server.sandboxes.use("one");
  expect(holding.lease?.instanceId).not.toBe(lease.instanceId);
});

test("where several servers share the sandboxes there is none to end with", async () => {
  const shared = new TestWorld({}, { sharedBy: "several" });
  await expect(shared.server.sandboxes.create({ name: "one", ...ends })).rejects.toMatchObject({
    code: "unsupported",
  });
  await shared.close();
});
