import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Holding, NewLease, NewSandbox, Store } from "@holdfast/core";

/** What every store must keep, whatever database is under it. `open` gives an empty one, with its clock at `now`. */
export function storeConformance(
  name: string,
  open: (now: () => number) => Promise<{ store: Store; dispose(): void }>,
): void {
  describe(`store: ${name}`, () => {
    let now = 1_000;
    let store: Store;
    let dispose: () => void;

    beforeEach(async () => {
      now = 1_000;
      ({ store, dispose } = await open(() => now));
    });
    afterEach(() => dispose());

    const insert = (over: Partial<NewSandbox> = {}, idempotencyKey?: string) =>
      store.insertSandbox(sandboxRow(over), {
        entry: { type: "created" },
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      });
    const reserve = (holding: Holding, instanceId = "i1") =>
      store.reserve(holding.sandbox, newLease(holding, instanceId), { type: "reserved" });

    test("the installation's id is made once", async () => {
      const first = await store.installationId();
      expect(first).toMatch(/./);
      expect(await store.installationId()).toBe(first);
    });

    test("a sandbox is found by id and by name, as it was written", async () => {
      const row = sandboxRow({ labels: { team: "a" }, spec: { network: "none", env: { A: null } } });
      await store.insertSandbox(row, { entry: { type: "created" } });
      const expected = { sandbox: { ...row, generation: 0, fence: 0, version: 1 }, lease: undefined };
      expect(await store.find("s1")).toEqual(expected);
      expect(await store.find("one")).toEqual(expected);
      expect(await store.holding("s1")).toEqual(expected);
      expect(await store.find("nobody")).toBeUndefined();
    });

    test("a name is taken once; the same idempotency key gives the first sandbox back", async () => {
      const first = await insert({}, "key");
      await expect(insert({ id: "s2" })).rejects.toMatchObject({ code: "already_exists" });
      expect(await insert({ id: "s3", name: "three" }, "key")).toEqual(first);
      expect(await store.find("s3")).toBeUndefined();
    });

    test("a reservation hands out the next generation and fence", async () => {
      const reserved = await reserve(await insert());
      expect(reserved?.sandbox).toMatchObject({ generation: 1, fence: 1, desired: "active" });
      expect(reserved?.lease).toMatchObject({
        phase: "reserved",
        generation: 1,
        fence: 1,
        attempts: 0,
        dueAt: 1_000,
      });
    });

    test("a second instance beside one that is not proved gone is refused", async () => {
      const reserved = await mustHave(reserve(await insert()));
      expect(await reserve({ ...reserved, lease: undefined }, "i2")).toBeUndefined();
      expect((await store.holding("s1"))?.lease?.instanceId).toBe("i1");
    });

    test("fifty reservations at once: one wins", async () => {
      const holding = await insert();
      const all = await Promise.all(Array.from({ length: 50 }, (_, i) => reserve(holding, `i${i}`)));
      expect(all.filter((one) => one !== undefined)).toHaveLength(1);
    });

    test("nothing is reserved for a sandbox that is to be deleted", async () => {
      const deleted = await mustHave(store.save(await insert(), { sandbox: { desired: "deleted" } }));
      expect(await reserve(deleted)).toBeUndefined();
    });

    test("a write decided on an older version changes nothing", async () => {
      const first = await insert();
      const second = await mustHave(store.save(first, { sandbox: { failure: "newer" } }));
      expect(
        await store.save(first, { sandbox: { failure: "older" }, entry: { type: "never" } }),
      ).toBeUndefined();
      expect(await store.holding("s1")).toEqual(second);
      expect((await store.timeline("s1", { since: 0, limit: 10 })).map(({ type }) => type)).toEqual([
        "created",
      ]);
    });

    test("a lease that moved on guards the sandbox's row, too", async () => {
      const reserved = await mustHave(reserve(await insert()));
      await store.save(reserved, { lease: { phase: "creating" } });
      expect(await store.save(reserved, { sandbox: { failure: "stale" } })).toBeUndefined();
    });

    test("an instance is gone only with evidence", async () => {
      const reserved = await mustHave(reserve(await insert()));
      await expect(store.save(reserved, { lease: { phase: "gone" } })).rejects.toThrow();
      const evidence = { kind: "exited", at: 5, detail: "pid 7 is gone" } as const;
      const gone = await store.save(reserved, { lease: { phase: "gone", evidence, dueAt: null } });
      expect(gone?.lease).toBeUndefined();
      expect((await reserve(await mustHave(store.holding("s1")), "i2"))?.lease?.generation).toBe(2);
    });

    test("burying leaves a tombstone, and a successor's generations go on from it", async () => {
      const reserved = await mustHave(reserve(await insert()));
      expect(await store.bury(reserved.sandbox)).toBe(false);
      const evidence = { kind: "exited", at: 5, detail: "" } as const;
      const gone = await mustHave(store.save(reserved, { lease: { phase: "gone", evidence, dueAt: null } }));
      now = 2_000;
      expect(await store.bury(gone.sandbox)).toBe(true);
      expect(await store.find("one")).toBeUndefined();
      const stone = { sandboxId: "s1", name: "one", generation: 1, fence: 1, deletedAt: 2_000 };
      expect(await store.tombstone("s1")).toEqual(stone);
      expect(await store.tombstone("one")).toEqual(stone);
      expect((await insert({ id: "s2" })).sandbox).toMatchObject({ generation: 1, fence: 1 });
    });

    test("what is due comes by its time, once per sandbox", async () => {
      for (const [i, dueAt] of [300, 100, null, 200].entries())
        await insert({ id: `s${i}`, name: `n${i}`, dueAt });
      expect(await store.nextDueAt()).toBe(100);
      expect(await store.due(250, 10)).toEqual(["s1", "s3"]);
      expect(await store.due(999, 2)).toEqual(["s1", "s3"]);
      const reserved = await reserve(await mustHave(store.holding("s0")));
      expect(reserved?.lease?.dueAt).toBe(1_000);
      expect(await store.due(2_000, 10)).toEqual(["s1", "s3", "s0"]);
    });

    test("unsettled: instances that are not gone, and deletions that are not finished", async () => {
      await reserve(await insert());
      await insert({ id: "s2", name: "two", desired: "deleted" });
      await insert({ id: "s3", name: "three" });
      expect((await store.unsettled()).sort()).toEqual(["s1", "s2"]);
    });

    test("lists page by page, filtered by label and state", async () => {
      for (let i = 0; i < 5; i++) {
        await insert({ id: `s${i}`, name: `n${i}`, labels: i % 2 === 0 ? { even: "yes" } : {} });
      }
      const first = await store.list({ limit: 2, label: { key: "even" } });
      expect(first.holdings.map(({ sandbox }) => sandbox.id)).toEqual(["s0", "s2"]);
      const second = await store.list({
        limit: 2,
        label: { key: "even" },
        ...(first.next && { after: first.next }),
      });
      expect(second.holdings.map(({ sandbox }) => sandbox.id)).toEqual(["s4"]);
      expect(second.next).toBeUndefined();
      expect((await store.list({ limit: 9, label: { key: "even", value: "no" } })).holdings).toEqual([]);
      expect((await store.list({ limit: 9, states: ["running"] })).holdings).toEqual([]);
      expect((await store.list({ limit: 9, states: ["stopped"] })).holdings).toHaveLength(5);
    });

    test("the timeline is in order and survives the sandbox", async () => {
      const holding = await insert();
      now = 1_500;
      const entry = { type: "stopping", cause: "stop_requested", detail: { n: 1 } };
      const saved = await mustHave(store.save(holding, { sandbox: {}, entry }));
      const [created, stopping] = await store.timeline("s1", { since: 0, limit: 10 });
      expect(created).toMatchObject({ type: "created", at: 1_000, detail: {} });
      expect(stopping).toMatchObject({ ...entry, at: 1_500 });
      expect(await store.timeline("s1", { since: created?.seq ?? 0, limit: 10 })).toEqual([
        stopping as never,
      ]);
      await store.bury(saved.sandbox);
      expect((await store.timeline("s1", { since: 0, limit: 10 })).map(({ type }) => type)).toEqual([
        "created",
        "stopping",
        "deleted",
      ]);
    });
  });
}

async function mustHave<T>(value: Promise<T | undefined>): Promise<T> {
  const got = await value;
  if (got === undefined) throw new Error("the store did not take it");
  return got;
}

function sandboxRow(over: Partial<NewSandbox>): NewSandbox {
  return {
    id: "s1",
    name: "one",
    provider: "fake",
    spec: {},
    labels: {},
    desired: "active",
    deleteMode: "graceful",
    createdAt: 1_000,
    launchFailures: 0,
    failure: null,
    lastDeath: null,
    dueAt: null,
    ...over,
  };
}

function newLease(holding: Holding, instanceId: string): NewLease {
  return {
    instanceId,
    installationId: "installation",
    sandboxId: holding.sandbox.id,
    provider: "fake",
    secret: "secret",
    createdAt: 1_000,
    startupDeadlineAt: 61_000,
  };
}
