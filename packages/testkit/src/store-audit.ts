import { expect, test } from "bun:test";
import {
  type Context,
  gone,
  insert,
  insertReserved,
  nothingKnown,
  orphan,
  saved,
  types,
} from "./store-fixtures.ts";

const keeping = { keepGoneMs: 86_400_000, keepEntries: 100 };

export function auditSuite(context: Context): void {
  for (const [what, sql, ids] of [
    ["lost", "UPDATE work SET due_at = NULL", ["s1"]],
    ["wrong", "UPDATE work SET due_at = 99999999999999 WHERE sandbox_id = 's1'", ["s1"]],
    ["lost with its row", "DELETE FROM work", ["s1", "s2"]],
  ] as const) {
    test(`scenario 54: a due time that is ${what} is put right`, async () => {
      const { store, raw } = context();
      await insertReserved(store);
      await insert(store, { id: "s2", name: "two" });
      expect(await store.audit(keeping)).toEqual({ repaired: [], forgotten: 0 });
      await raw(sql);
      expect((await store.holding("s1"))?.lease?.phase).toBe("reserved");
      expect(await store.audit(keeping)).toEqual({ repaired: [...ids], forgotten: 0 });
      expect(await store.nextDueAt({ except: [] })).toBe(1_000);
      expect(await store.audit(keeping)).toEqual({ repaired: [], forgotten: 0 });
      const holding = await store.holding("s1");
      if (holding !== undefined) await saved(store, holding, { sandbox: { failure: "still writable" } });
    });
  }

  test("an expired tombstone goes with its timeline, but not while a debt is left", async () => {
    const { store } = context();
    const now = await store.now();
    const bare = await insert(store, { id: "a", name: "a" });
    const kept = await insert(store, { id: "b", name: "b" });
    const indebted = await saved(store, await insert(store, { id: "c", name: "c" }), {
      found: orphan({ sandboxId: "c", phase: "debt" }),
    });
    await store.bury(bare, { keepUntil: now - 1_000 });
    await store.bury(kept, { keepUntil: now + 600_000 });
    await store.bury(indebted, { keepUntil: now - 1_000 });
    expect(await store.audit(keeping)).toEqual({ repaired: [], forgotten: 1 });
    expect(await store.tombstonesAmong(["a", "b", "c"])).toEqual(new Set(["b", "c"]));
    expect(await types(store, "a")).toEqual([]);
    expect(await types(store, "b")).toEqual(["created", "deleted"]);

    const ledger = await store.ledger("c");
    if (ledger !== undefined) await store.save(ledger, { leases: { i1: gone } });
    await store.audit({ ...keeping, keepGoneMs: 9_999_999_999_999 });
    expect(await store.tombstone("c")).toBeUndefined();
    expect(await store.leases({ limit: 9 })).toEqual([]);
  });

  test("evidence is kept for its time, and what is left of an orphan's id goes after it", async () => {
    const { store } = context();
    const now = await store.now();
    const at = { old: now - keeping.keepGoneMs - 60_000, young: now - 60_000 };
    for (const [sandboxId, time] of Object.entries(at)) {
      const found = orphan({ sandboxId, instanceId: sandboxId });
      const ledger = await store.save(nothingKnown(sandboxId), {
        found,
        entries: [{ type: "orphan_found" }],
      });
      const evidence = { ...gone.evidence, at: time };
      if (ledger !== undefined)
        await store.save(ledger, { leases: { [sandboxId]: { phase: "gone", evidence } } });
    }
    expect((await store.audit(keeping)).repaired).toEqual([]);
    expect((await store.leases({ limit: 9 })).map(({ sandboxId }) => sandboxId)).toEqual(["young"]);
    expect(await types(store, "old")).toEqual([]);
    expect(await types(store, "young")).toEqual(["orphan_found"]);
  });

  test("of a very long timeline the newest entries stay", async () => {
    const { store } = context();
    const entries = Array.from({ length: 30 }, (_, i) => ({ type: `e${i}` }));
    await saved(store, await insert(store), { entries });
    await saved(store, await insert(store, { id: "s2", name: "two" }), { entries: [{ type: "other" }] });
    expect(await store.audit({ ...keeping, keepEntries: 5 })).toEqual({ repaired: [], forgotten: 26 });
    expect(await types(store, "s1")).toEqual(["e25", "e26", "e27", "e28", "e29"]);
    expect(await types(store, "s2")).toEqual(["created", "other"]);
  });
}
