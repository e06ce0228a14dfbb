import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Provider } from "@holdfast/core";
import { settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
/** The mode of every stop that reached the backend. */
let stops: string[];

beforeEach(async () => {
  world = new TestWorld();
  stops = [];
  const stop = world.provider.stop.bind(world.provider);
  const seam: Provider = world.provider;
  seam.stop = (ref, mode) => {
    stops.push(mode);
    return stop(ref);
  };
  await world.server.start();
});
afterEach(() => world.close());

const attempts = async () => (await world.store.find("one"))?.lease?.attempts;
const graceful = { mode: "graceful", waitMs: 0 } as const;

test("scenario 23: 1000 repeated stops and deletes reset nothing, and cost the backend nothing", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.stop("one");
  await world.clock.until(async () => (await attempts()) === 3, { withinMs: 60_000 });
  const before = await world.store.find("one");
  for (let i = 0; i < 500; i++) await world.server.sandboxes.stop("one");
  expect(await world.store.find("one")).toEqual(before);
  for (let i = 0; i < 500; i++) await world.server.sandboxes.delete("one", graceful);
  await settled();
  expect((await world.store.find("one"))?.lease).toEqual(before?.lease);
  expect(stops).toEqual(["graceful", "graceful", "force"]);
});

test("scenario 27: a forced deletion escalates once, and a later graceful one takes nothing back", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.delete("one", graceful);
  await settled();
  for (const mode of ["force", "force", "graceful", "graceful"] as const) {
    await world.server.sandboxes.delete("one", { mode, waitMs: 0 });
    await settled();
  }
  expect(stops).toEqual(["graceful", "force"]);
  expect((await world.store.find("one"))?.sandbox.deleteMode).toBe("force");
  delete world.provider.faults.stop;
  await world.clock.until(() => world.isGone("one"), { withinMs: 60_000 });
  expect(stops).toEqual(["graceful", "force", "force"]);
});

test("scenario 25: when the attempts are spent it is quarantined, and a call that needs it forces one probe", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.stop("one");
  await world.clock.until(async () => (await world.phaseOf("one")) === "quarantined", { withinMs: 600_000 });
  expect(stops).toHaveLength(6);
  const calls = Array.from({ length: 20 }, () => world.server.sandboxes.use("one").catch(({ code }) => code));
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["cleanup_quarantined"]));
  expect(stops).toHaveLength(7);
  // Not more often than every ten seconds, whoever asks.
  await world.clock.pass(9_000);
  await world.server.sandboxes.use("one").catch(() => {});
  expect(stops).toHaveLength(7);
  // Its own timer goes on from there, and it is never given up.
  await world.clock.pass(6 * 3_600_000);
  expect(stops.length).toBeWithin(12, 18);
  delete world.provider.faults.stop;
  await world.clock.pass(11_000);
  await world.server.sandboxes.use("one");
  expect(await world.phaseOf("one")).toBe("live");
});

test("scenario 22: a restart in the middle of the ladder goes on where it was", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  await world.server.sandboxes.stop("one");
  await world.clock.until(async () => (await attempts()) === 3, { withinMs: 60_000 });
  const before = (await world.store.find("one"))?.lease;
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  expect((await world.store.find("one"))?.lease).toEqual(before as never);
});

test("scenario 20: a stop that was acknowledged, and survived, is no end", async () => {
  await world.running("one");
  world.provider.faults.stop = "survives";
  expect((await world.server.sandboxes.stop("one")).lease).toMatchObject({
    phase: "stop_due",
    lastError: expect.stringContaining("still there"),
  });
});

test("scenario 21: a stop whose answer was lost is proved by the next look", async () => {
  await world.running("one");
  world.provider.faults.stop = "lostAnswer";
  await world.server.sandboxes.stop("one");
  delete world.provider.faults.stop;
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 5_000 });
  expect(stops).toEqual(["graceful", "graceful"]);
});

test("scenario 51: a backend that is away for two hours costs few probes and no attempts, however many wait", async () => {
  await world.running("other");
  for (let i = 0; i < 40; i++) await world.running(`box${i}`);
  world.provider.faults.backend = "unreachable";
  await world.server.sandboxes.stop("other");
  for (let i = 0; i < 40; i++) await world.server.sandboxes.delete(`box${i}`, graceful);
  await settled();
  // Those that were under way before it was known, of forty.
  const early = stops.length;
  expect(early).toBeLessThan(10);
  expect(await world.server.sandboxes.use("other").catch((error) => error)).toMatchObject({
    code: "provider_unavailable",
    details: { nextAttemptAt: expect.any(String) },
  });
  await world.clock.pass(2 * 3_600_000);
  expect(stops.length - early).toBe(0);
  const ladder = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => (await world.store.find(`box${i}`))?.lease?.attempts),
  );
  expect(new Set(ladder)).toEqual(new Set([0]));
  delete world.provider.faults.backend;
  await world.clock.until(async () => (await world.store.unsettled()).length === 0, { withinMs: 180_000 });
  await world.server.sandboxes.use("other");
});

test("what an ephemeral sandbox left and cannot be removed is waited for, and then said: no call spins", async () => {
  await world.running("one", { filesystem: "ephemeral" });
  world.provider.faults.removeDisk = "fails";
  await world.server.sandboxes.stop("one");
  const used = world.server.sandboxes.use("one").catch((error) => error);
  await world.clock.pass(60_000);
  expect(await used).toMatchObject({ code: "cleanup_pending", started: "no" });
  delete world.provider.faults.removeDisk;
  const again = world.server.sandboxes.use("one");
  await world.clock.pass(15_000);
  expect((await again).holding.sandbox.generation).toBe(2);
});
