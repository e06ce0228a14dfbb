import { expect, test } from "bun:test";
import {
  type Context,
  gone,
  insert,
  insertReserved,
  must,
  newLease,
  orphan,
  rules,
  sandboxRow,
  saved,
  storeOf,
  types,
} from "./store-fixtures.ts";

export function sandboxSuite(context: Context): void {
  test("the installation's id is made once, and its home is kept until it moves", async () => {
    const under = context();
    const ids = await Promise.all([0, 1, 2].map((i) => storeOf(under, i).installationId()));
    expect(new Set(ids).size).toBe(1);
    expect(await under.store.home("/a")).toBe("/a");
    expect(await under.store.home("/b")).toBe("/a");
    await under.store.moveHome("/b");
    expect(await under.store.home("/c")).toBe("/b");
  });

  test("a sandbox is found by id and by name, as it was written", async () => {
    const { store } = context();
    const row = sandboxRow({
      labels: { team: "a" },
      spec: { network: "none", env: { A: null } },
      turns: [{ turnId: "t1", startedAt: 1, expiresAt: 2 }],
      claim: { claimId: "c", holder: "me", fence: 1, tokenHash: "h", expiresAt: 9 },
      lastDeath: { cause: "oom", at: "2026-01-01T00:00:00Z", detail: "" },
    });
    const inserted = await store.insertSandbox(row, { entry: { type: "created" } });
    const expected = {
      sandboxId: "s1",
      sandbox: { ...row, generation: 0, fence: 0, claimFence: 0, hasDisk: false },
      lease: undefined,
      debts: [],
      version: 1,
      readAt: expect.any(Number),
    };
    expect(inserted).toEqual(expected);
    for (const found of [store.find("s1"), store.find("one"), store.holding("s1"), store.ledger("s1")]) {
      expect(await found).toEqual(expected);
    }
    for (const none of [store.find("nobody"), store.holding("nobody"), store.ledger("nobody")]) {
      expect(await none).toBeUndefined();
    }
  });

  test("an id counts for more than another sandbox's name", async () => {
    const { store } = context();
    await insert(store, { id: "a", name: "b" });
    await insert(store, { id: "b", name: "c" });
    expect((await store.find("b"))?.sandbox.name).toBe("c");
  });

  test("a name is taken once; the same idempotency key gives the first sandbox back", async () => {
    const { store } = context();
    const options = { entry: { type: "created" }, idempotencyKey: "key" };
    const first = await store.insertSandbox(sandboxRow(), options);
    await expect(insert(store, { id: "s2" })).rejects.toMatchObject({ code: "already_exists" });
    const again = await store.insertSandbox(sandboxRow({ id: "s3", name: "three" }), options);
    expect(again).toEqual({ ...first, readAt: again.readAt });
    expect(await store.find("s3")).toBeUndefined();
    expect(await types(store, "s1")).toEqual(["created"]);
  });

  test("a hundred insertions of one name at once: one sandbox", async () => {
    const under = context();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, (_, i) => insert(storeOf(under, i), { id: `s${i}` })),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "already_exists" });
    }
    expect((await under.store.list({ limit: 9 })).holdings).toHaveLength(1);
  }, 20_000);

  test("thirty insertions under one idempotency key at once: all get the same sandbox", async () => {
    const under = context();
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        storeOf(under, i).insertSandbox(sandboxRow({ id: `s${i}` }), {
          entry: { type: "created" },
          idempotencyKey: "key",
        }),
      ),
    );
    expect(new Set(all.map(({ sandboxId }) => sandboxId)).size).toBe(1);
  }, 20_000);

  test("a sandbox and its first lease are written together, or neither is", async () => {
    const { store } = context();
    const entry = { type: "created" };
    const full = rules({ slots: 0 });
    await expect(
      store.insertSandbox(sandboxRow(), { entry, lease: newLease(), rules: full }),
    ).rejects.toMatchObject({ code: "capacity_exhausted", details: { resource: "slots" } });
    expect(await store.find("s1")).toBeUndefined();
    expect(await types(store, "s1")).toEqual([]);

    const both = await store.insertSandbox(sandboxRow(), { entry, lease: newLease(), rules: rules() });
    expect(both).toMatchObject({ version: 1, sandbox: { generation: 1, hasDisk: true } });
    expect(both.lease).toMatchObject({ instanceId: "i1", phase: "reserved", generation: 1 });
    expect(await store.holding("s1")).toEqual({ ...both, readAt: expect.any(Number) });
    await expect(
      store.insertSandbox(sandboxRow({ id: "s2" }), { entry, lease: newLease(), rules: full }),
    ).rejects.toMatchObject({ code: "already_exists" });
  });

  test("lists page by page, filtered by label and state", async () => {
    const { store } = context();
    for (let i = 0; i < 5; i++) {
      await insert(store, { id: `s${i}`, name: `n${i}`, labels: i % 2 === 0 ? { even: "yes" } : {} });
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

  test("burying needs neither instance nor disk, and leaves a tombstone", async () => {
    const { store } = context();
    const reserved = await insertReserved(store);
    const keepUntil = 9_999_999_999_999;
    const diskless = await saved(store, reserved, { sandbox: { hasDisk: false } });
    expect(await store.bury(diskless, { keepUntil })).toBe(false);
    const stopped = await saved(store, diskless, { sandbox: { hasDisk: true }, leases: { "i-s1": gone } });
    expect(await store.bury(stopped, { keepUntil })).toBe(false);
    const bare = await saved(store, stopped, { sandbox: { hasDisk: false, deleteReason: "asked" } });
    expect(await store.bury(stopped, { keepUntil })).toBe(false);
    expect(await store.bury(bare, { keepUntil })).toBe(true);
    expect(await store.bury(bare, { keepUntil })).toBe(false);

    expect(await store.find("s1")).toBeUndefined();
    expect(await store.ledger("s1")).toBeUndefined();
    const stone = {
      sandboxId: "s1",
      name: "name-s1",
      generation: 1,
      fence: 1,
      deletedAt: expect.any(Number),
      cause: "asked",
      keepUntil,
    };
    expect(await store.tombstone("s1")).toEqual(stone);
    expect(await store.tombstone("name-s1")).toEqual(stone);
    expect(await store.tombstonesAmong(["s1", "s2"])).toEqual(new Set(["s1"]));
    expect((await store.timeline("s1", { since: 0, limit: 9 })).at(-1)).toMatchObject({
      type: "deleted",
      cause: "asked",
    });
    expect(await store.leasesOf("fake")).toEqual([]);
  });

  test("generations under a name go on from the highest that any predecessor had", async () => {
    const { store } = context();
    for (const [id, generation] of [
      ["a", 7],
      ["b", 9],
    ] as const) {
      const holding = await insert(store, { id });
      const counted = await saved(store, holding, { sandbox: { generation, fence: generation + 1 } });
      expect(await store.bury(counted, { keepUntil: 1 })).toBe(true);
    }
    const successor = await insert(store, { id: "c" });
    expect(successor.sandbox).toMatchObject({ generation: 9, fence: 10 });
    const reserved = await store.reserve(successor, newLease({ sandboxId: "c" }), rules());
    expect(reserved?.lease).toMatchObject({ generation: 10, fence: 11 });
  });

  test("a debt outlives its sandbox, and is still due", async () => {
    const { store } = context();
    const holding = await insert(store);
    const indebted = await saved(store, holding, { found: orphan({ phase: "debt", nextAttemptAt: 77 }) });
    expect(await store.bury(indebted, { keepUntil: 1 })).toBe(true);
    expect(await store.ledger("s1")).toMatchObject({ sandbox: undefined, debts: [{ instanceId: "i1" }] });
    expect(await store.nextDueAt({ except: [] })).toBe(77);
  });

  test("the timeline is in order, says who wanted it, and survives the sandbox", async () => {
    const { store } = context();
    const holding = await insert(store);
    const entry = { type: "stopping", cause: "stop_requested", actor: "operator", detail: { n: 1 } };
    const changed = await saved(store, holding, { entries: [entry, { type: "second" }] });
    const [created, stopping, second] = await store.timeline("s1", { since: 0, limit: 10 });
    expect(created).toEqual({
      seq: expect.any(Number),
      at: holding.readAt,
      sandboxId: "s1",
      type: "created",
      detail: {},
    });
    expect(stopping).toEqual({ ...entry, seq: expect.any(Number), at: changed.readAt, sandboxId: "s1" });
    const since = created?.seq ?? 0;
    expect(await store.timeline("s1", { since, limit: 10 })).toEqual([stopping as never, second as never]);
    expect(await store.timeline("s1", { since, limit: 1 })).toEqual([stopping as never]);
    await store.bury(changed, { keepUntil: 1 });
    expect(await types(store, "s1")).toEqual(["created", "stopping", "second", "deleted"]);
  });

  test("which of these exist, in one question", async () => {
    const { store } = context();
    await insertReserved(store, "a");
    await insert(store, { id: "b", name: "b", desired: "stopped" });
    expect(await store.sandboxesAmong(["a", "b", "c"])).toEqual(
      new Map([
        ["a", { generation: 1, fence: 1, hasDisk: true, desired: "active" }],
        ["b", { generation: 0, fence: 0, hasDisk: false, desired: "stopped" }],
      ] as const),
    );
    expect(await store.sandboxesAmong([])).toEqual(new Map());
  });

  test("the answer to a write is what is read afterwards", async () => {
    const { store } = context();
    const reserved = await insertReserved(store);
    const changed = await must(
      store.save(reserved, {
        sandbox: { failure: "none", turns: [{ turnId: "t", startedAt: 1, expiresAt: 50 }] },
        leases: { "i-s1": { phase: "debt", limits: { state: "none" }, nextAttemptAt: 60 } },
        found: orphan({ instanceId: "i0", phase: "debt" }),
      }),
    );
    expect(changed.version).toBe(reserved.version + 1);
    expect(await store.ledger("s1")).toEqual({ ...changed, readAt: expect.any(Number) });
    expect(changed.debts.map(({ instanceId }) => instanceId)).toEqual(["i-s1", "i0"]);
  });
}
