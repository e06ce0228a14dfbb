import { expect, test } from "bun:test";
import {
  type Context,
  gone,
  insert,
  insertReserved,
  newLease,
  orphan,
  rules,
  saved,
  storeOf,
} from "./store-fixtures.ts";

export function admissionSuite(context: Context): void {
  test("fifty reservations of one sandbox at once: one wins", async () => {
    const under = context();
    const holding = await insert(under.store);
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        storeOf(under, i).reserve(holding, newLease({ instanceId: `i${i}` }), rules()),
      ),
    );
    expect(all.filter((one) => one !== undefined)).toHaveLength(1);
  }, 20_000);

  test("scenario 44: fifty parallel launches for ten slots are exactly ten rows", async () => {
    const under = context();
    const holdings = await Promise.all(
      Array.from({ length: 50 }, (_, i) => insert(storeOf(under, i), { id: `s${i}`, name: `n${i}` })),
    );
    const outcomes = await Promise.allSettled(
      holdings.map((holding, i) =>
        storeOf(under, i).reserve(
          holding,
          newLease({ sandboxId: `s${i}`, instanceId: `i${i}` }),
          rules({ slots: 10 }),
        ),
      ),
    );
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(40);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({
        code: "capacity_exhausted",
        details: { resource: "slots", capacity: 10 },
      });
    }
    expect(await under.store.leases({ limit: 99 })).toHaveLength(10);
    const { holdings: after } = await under.store.list({ limit: 99 });
    expect(after.filter(({ sandbox }) => sandbox.generation === 1)).toHaveLength(10);
  }, 20_000);

  test("a tenant's quota holds over all providers at once", async () => {
    const under = context();
    const holdings = await Promise.all(
      Array.from({ length: 12 }, (_, i) => insert(storeOf(under, i), { id: `s${i}`, name: `n${i}` })),
    );
    const outcomes = await Promise.allSettled(
      holdings.map((holding, i) =>
        storeOf(under, i).reserve(
          holding,
          newLease({ sandboxId: `s${i}`, instanceId: `i${i}`, provider: `p${i % 3}` }),
          rules({ tenantQuota: 4 }),
        ),
      ),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
  }, 20_000);

  test("scenario 45: what is quarantined counts, a debt counts for its host alone, what is gone for nobody", async () => {
    const { store } = context();
    let holding = await insertReserved(store);
    const usage = async () => {
      const lease = newLease({
        sandboxId: "s2",
        instanceId: "i2",
        reservation: { memoryBytes: 1_000, diskBytes: 0 },
      });
      const measured = { ...rules().measured, memoryBytes: 0 };
      const code = async (over: Parameters<typeof rules>[0]) =>
        (await store.reserve(other, lease, rules(over)).catch((error) => error))?.details?.used;
      return {
        tenant: await code({ tenantQuota: 0 }),
        slots: await code({ slots: 0 }),
        memory: await code({ measured }),
      };
    };
    const other = await insert(store, { id: "s2", name: "two" });
    expect(await usage()).toEqual({ tenant: 1, slots: 1, memory: 100 });
    holding = await saved(store, holding, { leases: { "i-s1": { phase: "quarantined" } } });
    expect(await usage()).toEqual({ tenant: 1, slots: 1, memory: 100 });
    holding = await saved(store, holding, { leases: { "i-s1": { phase: "debt" } } });
    expect(await usage()).toEqual({ tenant: 0, slots: 1, memory: 100 });
    holding = await saved(store, holding, { leases: { "i-s1": gone } });
    expect(await usage()).toEqual({ tenant: 0, slots: 0, memory: 0 });
    await saved(store, holding, { found: orphan({ instanceId: "x", provider: "elsewhere" }) });
    expect(await usage()).toEqual({ tenant: 1, slots: 0, memory: 0 });
  });
}
