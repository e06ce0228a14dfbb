import { expect, test } from "bun:test";
import { Bell, withBell } from "./bell.ts";
import { HandClock, settled } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

test("a ring wakes those who wait for that sandbox, and those who wait for any", async () => {
  const bell = new Bell();
  const clock = new HandClock();
  const woken: string[] = [];
  const wait = (who: string, sandboxId: string | undefined, signal?: AbortSignal) =>
    bell
      .wait(sandboxId, { ms: 1_000, clock, ...(signal !== undefined && { signal }) })
      .then(() => woken.push(who));
  const gone = new AbortController();
  const all = [wait("one", "s1"), wait("two", "s2"), wait("any", undefined), wait("off", "s3", gone.signal)];
  bell.ring("s1");
  await settled();
  expect(woken).toEqual(["one", "any"]);
  gone.abort();
  await settled();
  expect(woken).toEqual(["one", "any", "off"]);
  // A ring that nobody waited for is not kept.
  bell.ring("s1");
  const late = wait("late", "s1");
  await clock.pass(1_000);
  expect(woken).toEqual(["one", "any", "off", "two", "late"]);
  await Promise.all([...all, late]);
});

test("every write to a sandbox's rows rings, and a read does not", async () => {
  const world = new TestWorld();
  const bell = new Bell();
  const rung: string[] = [];
  bell.ring = (sandboxId) => void rung.push(sandboxId);
  const store = withBell(world.store, bell);
  await world.server.start();
  const { sandboxId } = await world.server.sandboxes.create({ name: "one" });
  const before = await store.ledger(sandboxId);
  expect(rung).toEqual([]);
  if (before !== undefined) await store.save(before, { sandbox: { labels: { a: "b" } } });
  expect(rung).toEqual([sandboxId]);
  await world.close();
});
