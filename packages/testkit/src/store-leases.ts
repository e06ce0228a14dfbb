import { expect, test } from "bun:test";
import {
  type Context,
  exited,
  gone,
  insert,
  insertReserved,
  must,
  newLease,
  nothingKnown,
  orphan,
  rules,
  saved,
  storeOf,
  types,
} from "./store-fixtures.ts";

export function leaseSuite(context: Context): void {
  test("a reservation hands out the next generation and fence", async () => {
    const { store } = context();
    const stopped = await insert(store, { desired: "stopped" });
    const reserved = await must(store.reserve(stopped, newLease(), rules()));
    expect(reserved.sandbox).toMatchObject({ generation: 1, fence: 1, desired: "active", hasDisk: true });
    expect(reserved.lease).toEqual(
      orphan({ origin: "launch", phase: "reserved", stopReason: null, generation: 1, fence: 1 }),
    );
    expect(await store.holding("s1")).toEqual({ ...reserved, readAt: expect.any(Number) });
  });

  test("scenario 8: a second active instance of a sandbox is refused, by the index too", async () => {
    const { store, raw } = context();
    const reserved = await insertReserved(store);
    expect(await store.reserve(reserved, newLease({ instanceId: "i2" }), rules())).toBeUndefined();
    await expect(store.save(reserved, { found: orphan({ instanceId: "i2" }) })).rejects.toThrow();
    expect(await store.ledger("s1")).toEqual({ ...reserved, readAt: expect.any(Number) });
    await saved(store, reserved, { found: orphan({ instanceId: "i2", phase: "debt" }) });
    await expect(raw("UPDATE instance SET phase = 'live' WHERE instance_id = 'i2'")).rejects.toThrow();
    expect((await store.holding("s1"))?.lease?.instanceId).toBe("i-s1");
  });

  test("nothing is reserved for a sandbox that is to be deleted, nor beside an ephemeral one's disk", async () => {
    const { store } = context();
    const deleted = await insert(store, { desired: "deleted" });
    expect(await store.reserve(deleted, newLease(), rules())).toBeUndefined();

    const { policy } = deleted.sandbox;
    const ephemeral = { policy: { ...policy, onIdle: "remove", filesystem: "ephemeral" } } as const;
    const holding = await insert(store, { id: "s2", name: "two", ...ephemeral });
    const lease = newLease({ sandboxId: "s2" });
    const first = await must(store.reserve(holding, lease, rules()));
    const over = await saved(store, first, { leases: { i1: gone } });
    const second = newLease({ sandboxId: "s2", instanceId: "i2" });
    expect(await store.reserve(over, second, rules())).toBeUndefined();
    const clean = await saved(store, over, { sandbox: { hasDisk: false } });
    expect((await store.reserve(clean, second, rules()))?.lease?.generation).toBe(2);
  });

  test("a write decided on an older version changes nothing", async () => {
    const { store } = context();
    const first = await insert(store);
    const second = await saved(store, first, { sandbox: { failure: "newer" } });
    expect(
      await store.save(first, { sandbox: { failure: "older" }, entries: [{ type: "never" }] }),
    ).toBeUndefined();
    expect(await store.reserve(first, newLease(), rules())).toBeUndefined();
    expect(await store.holding("s1")).toEqual({ ...second, readAt: expect.any(Number) });
    expect(await types(store, "s1")).toEqual(["created"]);
  });

  test("thirty writes decided on the same version at once: one is done", async () => {
    const under = context();
    const holding = await insert(under.store);
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        storeOf(under, i).save(holding, { entries: [{ type: `write-${i}` }] }),
      ),
    );
    expect(all.filter((one) => one !== undefined)).toHaveLength(1);
    expect(await types(under.store, "s1")).toHaveLength(2);
  });

  test("a lease that moved on guards the sandbox's row, too", async () => {
    const { store } = context();
    const reserved = await insertReserved(store);
    await saved(store, reserved, { leases: { "i-s1": { phase: "creating" } } });
    expect(await store.save(reserved, { sandbox: { failure: "stale" } })).toBeUndefined();
  });

  test("an instance is gone only with evidence, and evidence is only of what is gone", async () => {
    const { store, raw } = context();
    const reserved = await insertReserved(store);
    await expect(store.save(reserved, { leases: { "i-s1": { phase: "gone" } } })).rejects.toThrow();
    await expect(store.save(reserved, { leases: { "i-s1": { evidence: exited } } })).rejects.toThrow();
    await expect(raw("UPDATE instance SET phase = 'gone'")).rejects.toThrow();
    const over = await saved(store, reserved, { leases: { "i-s1": gone } });
    expect(over.lease).toBeUndefined();
    expect(await store.leasesOf("fake")).toMatchObject([{ phase: "gone", evidence: exited }]);
    const next = await store.reserve(over, newLease({ instanceId: "i2" }), rules());
    expect(next?.lease?.generation).toBe(2);
  });

  test("a row that is gone, or another sandbox's, or not there, cannot be changed: nothing is written", async () => {
    const { store } = context();
    await insertReserved(store, "other");
    const over = await saved(store, await insertReserved(store), { leases: { "i-s1": gone } });
    for (const instanceId of ["i-s1", "i-other", "nobody"]) {
      const change = { sandbox: { failure: "half" }, leases: { [instanceId]: { lastError: "x" } } };
      await expect(store.save(over, change)).rejects.toMatchObject({ code: "internal" });
      await expect(store.save(over, { found: orphan({ instanceId: "i-other" }) })).rejects.toMatchObject({
        code: "internal",
      });
    }
    const other = await must(store.ledger("other"));
    await must(store.save(other, { leases: { "i-other": gone } }));
    await expect(store.save(over, { found: orphan({ instanceId: "i-other" }) })).rejects.toThrow();
    await expect(store.save(nothingKnown("s9"), { sandbox: {} })).rejects.toMatchObject({ code: "internal" });
    expect(await store.holding("s1")).toEqual({ ...over, readAt: expect.any(Number) });
  });

  test("a ghost: a row that was closed is opened again under the same instance id", async () => {
    const { store } = context();
    const reserved = await insertReserved(store);
    const over = await saved(store, reserved, { leases: { "i-s1": gone } });
    const lease = must(Promise.resolve(reserved.lease));
    const ghost = { ...(await lease), phase: "stop_due", stopReason: "ghost", evidence: null } as const;
    const haunted = await saved(store, over, { found: ghost });
    expect(haunted.lease).toEqual(ghost);
    expect((await store.holding("s1"))?.lease).toEqual(ghost);
    expect(await store.leasesOf("fake")).toHaveLength(1);
    await expect(store.save(haunted, { found: ghost })).rejects.toMatchObject({ code: "internal" });
  });

  test("an orphan's id has instances and no sandbox; when nothing is left of it, it can be found again", async () => {
    const { store } = context();
    const nobody = nothingKnown("s7");
    const found = orphan({ sandboxId: "s7", nextAttemptAt: 44 });
    const first = await must(store.save(nobody, { found, entries: [{ type: "orphan_found" }] }));
    expect(first).toMatchObject({ sandboxId: "s7", sandbox: undefined, lease: found, version: 1 });
    expect(await store.ledger("s7")).toEqual({ ...first, readAt: expect.any(Number) });
    expect(await store.holding("s7")).toBeUndefined();
    expect(await store.unsettled()).toEqual(["s7"]);
    expect(await store.nextDueAt({ except: [] })).toBe(44);
    expect(
      await store.save(nobody, { found: orphan({ sandboxId: "s7", instanceId: "i2" }) }),
    ).toBeUndefined();

    await must(store.save(first, { leases: { i1: gone } }));
    expect(await store.ledger("s7")).toBeUndefined();
    expect(await store.unsettled()).toEqual([]);
    const again = await must(store.save(nobody, { found }));
    expect(again.version).toBeGreaterThan(first.version + 1);
    expect(await store.save(first, { entries: [{ type: "stale" }] })).toBeUndefined();
  });

  test("generations and fences never decrease, whoever asks", async () => {
    const { store, raw } = context();
    const holding = await saved(store, await insertReserved(store), {
      sandbox: { generation: 5, fence: 5, claimFence: 5 },
    });
    for (const sandbox of [{ generation: 4 }, { fence: 4 }, { claimFence: 4 }]) {
      await expect(store.save(holding, { sandbox })).rejects.toThrow(/never decreases/);
    }
    await expect(store.save(holding, { leases: { "i-s1": { fence: 0 } } })).rejects.toThrow(
      /never decreases/,
    );
    await expect(raw("UPDATE sandbox SET generation = 1")).rejects.toThrow(/never decreases/);
    expect(await store.holding("s1")).toEqual({ ...holding, readAt: expect.any(Number) });
  });

  test("a generation is launched once", async () => {
    const { store } = context();
    const over = await saved(store, await insertReserved(store), { leases: { "i-s1": gone } });
    const twin = orphan({ instanceId: "i2", origin: "launch", generation: 1 });
    await expect(store.save(over, { found: twin })).rejects.toThrow();
    await saved(store, over, { found: { ...twin, origin: "orphan" } });
  });

  test("scenario 56: an unknown phase is read as quarantined, blocks, and is never taken for none", async () => {
    const { store, rawUnchecked } = context();
    await insertReserved(store);
    await rawUnchecked("UPDATE instance SET phase = 'hibernating'");
    const holding = await must(store.holding("s1"));
    expect(holding.lease).toMatchObject({
      phase: "quarantined",
      lastError: expect.stringMatching(/hibernating/),
    });
    expect(await store.reserve(holding, newLease({ instanceId: "i2" }), rules())).toBeUndefined();
    expect(await store.bury(holding, { keepUntil: 1 })).toBe(false);
    expect(await store.unsettled()).toEqual(["s1"]);
    expect(await store.leasesOf("fake")).toMatchObject([{ phase: "quarantined" }]);
  });

  test("unsettled: instances that are not gone, deletions that are not finished, and open turns", async () => {
    const { store } = context();
    await insertReserved(store, "s1");
    await insert(store, { id: "s2", name: "two", desired: "deleted" });
    await insert(store, { id: "s3", name: "three" });
    await insert(store, { id: "s4", name: "four", turns: [{ turnId: "t", startedAt: 1, expiresAt: 9 }] });
    expect(await store.unsettled()).toEqual(["s1", "s2", "s4"]);
  });

  test("leases page by page, and by provider", async () => {
    const { store } = context();
    for (const id of ["a", "b", "c"]) await insertReserved(store, id);
    const first = await store.leases({ limit: 2 });
    expect(first.map(({ instanceId }) => instanceId)).toEqual(["i-a", "i-b"]);
    expect((await store.leases({ limit: 2, after: "i-b" })).map(({ instanceId }) => instanceId)).toEqual([
      "i-c",
    ]);
    expect(await store.leasesOf("fake")).toHaveLength(3);
    expect(await store.leasesOf("other")).toEqual([]);
  });
}
