import { expect, test } from "bun:test";
import { type Holding, NOBODY, newSpare, type Store } from "@holdfast/core";
import {
  type Context,
  insert,
  insertReserved,
  must,
  newLease,
  rules,
  sandboxRow,
  saved,
  storeOf,
  types,
} from "./store-fixtures.ts";

const entry = { type: "created", detail: { spare: true } };

/** One that waits to be given away; its time is over long after now. */
async function spare(store: Store, id = "spare"): Promise<Holding> {
  const now = await store.now();
  const lease = newLease({ sandboxId: id, instanceId: `i-${id}`, tenantId: NOBODY });
  const row = newSpare(id, sandboxRow({ policy: { ...sandboxRow().policy, lifetimeSeconds: 60 } }), now);
  const made = await store.insertSandbox(row, { entry: { type: "prepared" }, lease, rules: rules() });
  const live = { phase: "live", admittedAt: now, hardStopAt: now + 3_600_000 } as const;
  return saved(store, made, { leases: { [`i-${id}`]: live } });
}

export function spareSuite(context: Context): void {
  test("a spare is found neither by its id nor in a list, and is no sandbox in the census", async () => {
    const { store } = context();
    const one = await spare(store);
    expect(await store.find("spare")).toBeUndefined();
    expect((await store.list({ limit: 9 })).holdings).toEqual([]);
    expect(await store.census()).toMatchObject({
      sandboxes: [],
      spares: [{ provider: "fake", state: "running", count: 1 }],
      leases: [{ phase: "live", count: 1 }],
    });
    expect((await store.spares("fake")).map(({ version }) => version)).toEqual([one.version]);
    expect(await store.spares("another")).toEqual([]);
  });

  test("given away it is a sandbox like one that was just made: its own row, the newest of all, and due by its own policy", async () => {
    const { store } = context();
    const one = await spare(store);
    await insertReserved(store, "between");
    const policy = { ...sandboxRow().policy, lifetimeSeconds: 600, maxLifetimeSeconds: 60 };
    const row = sandboxRow({
      id: "asked",
      name: "asked",
      policy,
      labels: { a: "b" },
      spec: { env: { A: "1" } },
    });
    const given = await must(store.give(one, row, { entry, rules: rules() }));
    const now = given.readAt;
    expect(given.sandbox).toEqual({
      ...row,
      ...{ id: "spare", name: "spare", generation: 1, fence: 1, claimFence: 0, hasDisk: true },
    });
    expect(given.lease).toEqual({
      ...(one.lease as NonNullable<Holding["lease"]>),
      ...{ tenantId: "default", admittedAt: now, idleCheckAt: now + 600_000, hardStopAt: now + 60_000 },
    });
    expect((await store.list({ limit: 9 })).holdings.map(({ sandboxId }) => sandboxId)).toEqual([
      "between",
      "spare",
    ]);
    expect(await store.find("spare")).toMatchObject({ version: given.version });
    expect(await store.spares("fake")).toEqual([]);
    expect(await types(store, "spare")).toEqual(["prepared", "created"]);
    expect((await store.audit({ keepGoneMs: 9e9, keepEntries: 99 })).repaired).toEqual([]);
  });

  test("fifty creates and one spare: one gets it", async () => {
    const under = context();
    const one = await spare(under.store);
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        storeOf(under, i).give(one, sandboxRow({ labels: { i: String(i) } }), { entry, rules: rules() }),
      ),
    );
    expect(all.filter((given) => given !== undefined)).toHaveLength(1);
  }, 20_000);

  test.each([
    [
      "was read before it changed",
      async (store: Store, one: Holding) => {
        await saved(store, one, { sandbox: { labels: {} } });
        return one;
      },
    ],
    [
      "is to be deleted",
      (store: Store, one: Holding) => saved(store, one, { sandbox: { desired: "deleted" } }),
    ],
    [
      "does not live",
      (store: Store, one: Holding) =>
        saved(store, one, { leases: { "i-spare": { phase: "stop_due", nextAttemptAt: one.readAt } } }),
    ],
    [
      "is near its end",
      (store: Store, one: Holding) =>
        saved(store, one, { leases: { "i-spare": { hardStopAt: one.readAt + 5_000 } } }),
    ],
    [
      "is somebody's",
      (store: Store, one: Holding) => must(store.give(one, sandboxRow(), { entry, rules: rules() })),
    ],
  ])("one that %s is not given away", async (_, change) => {
    const { store } = context();
    const changed = await change(store, await spare(store));
    const before = await store.ledger("spare");
    expect(await store.give(changed, sandboxRow(), { entry, rules: rules() })).toBeUndefined();
    expect(await store.ledger("spare")).toEqual({ ...before, readAt: expect.any(Number) } as typeof before);
  });

  test("a key that another sandbox has leaves the spare as it is, however many ask at once", async () => {
    const under = context();
    const one = await spare(under.store);
    const idempotencyKey = "key";
    const [first, ...others] = await Promise.all([
      under.store.insertSandbox(sandboxRow({ id: "first", name: "first" }), { idempotencyKey, entry }),
      ...Array.from({ length: 9 }, (_, i) =>
        storeOf(under, i).give(one, sandboxRow(), { idempotencyKey, entry, rules: rules() }),
      ),
    ]);
    const given = others.filter((other) => other !== undefined);
    // Whoever was first, there is one sandbox under the key, and the other way to it finds that one.
    const again = await under.store.insertSandbox(sandboxRow({ id: "x", name: "x" }), {
      idempotencyKey,
      entry,
    });
    expect(again.sandboxId).toBe(given[0]?.sandboxId ?? "first");
    expect(first.sandboxId).toBe(again.sandboxId);
    expect(given.length + (await under.store.spares("fake")).length).toBe(1);
  }, 20_000);

  test("it has its room already, and needs a place in its tenant's quota", async () => {
    const { store } = context();
    const one = await spare(store);
    await insertReserved(store, "another");
    const full = rules({ slots: 2, measured: { ...rules().measured, memoryBytes: 200 } });
    const refused = store.give(one, sandboxRow(), { entry, rules: { ...full, tenantQuota: 1 } });
    expect(await refused.catch((error) => error.details)).toEqual({ used: 1, quota: 1 });
    expect(await store.spares("fake")).toHaveLength(1);
    expect(await store.give(one, sandboxRow(), { entry, rules: { ...full, tenantQuota: 2 } })).toBeDefined();
  });

  test("one is made only where another like it would find room, too", async () => {
    const { store } = context();
    await insert(store);
    const prepare = (slots: number) => {
      const lease = newLease({ sandboxId: "spare", tenantId: NOBODY });
      const row = newSpare("spare", sandboxRow(), 0);
      return store.insertSandbox(row, { entry, lease, rules: rules({ slots, leavesRoom: true }) });
    };
    expect(await prepare(1).catch(({ code }) => code)).toBe("capacity_exhausted");
    expect((await prepare(2)).sandboxId).toBe("spare");
  });
}
