import { expect, test } from "bun:test";
import {
  type Context,
  insert,
  insertReserved,
  must,
  newLease,
  rules,
  saved,
  storeOf,
} from "./store-fixtures.ts";

const minute = { owner: "me", ttlMs: 60_000 };
const all = { limit: 99, except: [] };

export function ticketSuite(context: Context): void {
  test("what is due comes by its time, the longest overdue first", async () => {
    const { store } = context();
    for (const [i, at] of [300, 100, null, 200].entries()) {
      const turns = at === null ? [] : [{ turnId: "t", startedAt: 0, expiresAt: at }];
      await insert(store, { id: `s${i}`, name: `n${i}`, turns, provider: i === 1 ? "far" : "near" });
    }
    expect(await store.nextDueAt({ except: [] })).toBe(100);
    expect(await store.nextDueAt({ except: ["far"] })).toBe(200);
    expect(await store.nextDueAt({ except: ["far", "near"] })).toBeUndefined();
    const keys = async (options: { limit: number; except: readonly string[] }) =>
      (await store.takeDue({ ...minute, ...options })).map(({ key }) => key);
    const taken = await store.takeDue({ ...minute, ...all });
    expect(taken.map(({ key }) => key)).toEqual(["s1", "s3", "s0"]);
    for (const ticket of taken) await store.release(ticket);
    expect(await keys({ limit: 1, except: ["far"] })).toEqual(["s3"]);
    expect(await keys({ limit: 1, except: [] })).toEqual(["s1"]);
    expect(await keys(all)).toEqual(["s0"]);
    expect(await keys(all)).toEqual([]);
  });

  test("what is due later is not taken", async () => {
    const { store } = context();
    const expiresAt = (await store.now()) + 600_000;
    await insert(store, { turns: [{ turnId: "t", startedAt: 0, expiresAt }] });
    expect(await store.takeDue({ ...minute, ...all })).toEqual([]);
    expect(await store.nextDueAt({ except: [] })).toBe(expiresAt);
  });

  test("three servers that take at the same time never take the same", async () => {
    const under = context();
    await Promise.all(Array.from({ length: 60 }, (_, i) => insertReserved(storeOf(under, i), `s${i}`)));
    const taken = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        storeOf(under, i).takeDue({ owner: `owner-${i % 3}`, ttlMs: 60_000, limit: 7, except: [] }),
      ),
    );
    const keys = taken.flat().map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    const rest = await under.store.takeDue({ ...minute, ...all });
    expect(keys.length + rest.length).toBe(60);
  }, 20_000);

  test("a ticket for one sandbox, due or not, while nobody else has it", async () => {
    const { store } = context();
    await insert(store);
    const before = await store.now();
    const ticket = await must(store.ticket("s1", minute));
    expect(ticket).toEqual({ key: "s1", owner: "me", no: 1, until: expect.any(Number), ttlMs: 60_000 });
    expect(ticket.until).toBeGreaterThanOrEqual(before + 60_000);
    expect(await store.ticket("s1", minute)).toBeUndefined();
    expect(await store.ticket("s1", { owner: "you", ttlMs: 1 })).toBeUndefined();
    expect(await store.ticket("nobody", minute)).toBeUndefined();
    await store.release(ticket);
    expect(await store.ticket("s1", { owner: "you", ttlMs: 1 })).toMatchObject({ owner: "you", no: 2 });
  });

  test("a stale ticket's write changes nothing", async () => {
    const { store } = context();
    const holding = await insert(store);
    const stale = await must(store.ticket("s1", { owner: "me", ttlMs: 0 }));
    const current = await must(store.ticket("s1", { owner: "you", ttlMs: 60_000 }));
    const change = { sandbox: { failure: "stale" }, entries: [{ type: "never" }] };
    expect(await store.save(holding, change, stale)).toBeUndefined();
    expect(await store.save(holding, change, { ...current, owner: "me" })).toBeUndefined();
    expect(await store.bury(holding, { keepUntil: 1, ticket: stale })).toBe(false);
    expect(await store.renew(stale)).toBeUndefined();
    await store.release(stale);
    await store.release({ ...current, owner: "me" });
    expect(await store.ticket("s1", minute)).toBeUndefined();
    expect(await store.holding("s1")).toEqual({ ...holding, readAt: expect.any(Number) });
    expect(await store.save(holding, { sandbox: { failure: "current" } }, current)).toBeDefined();
  });

  test("a server's own older ticket is as stale as another's", async () => {
    const { store } = context();
    const holding = await insert(store);
    const older = await must(store.ticket("s1", { owner: "me", ttlMs: 0 }));
    const newer = await must(store.ticket("s1", minute));
    expect(newer.no).toBe(older.no + 1);
    expect(await store.save(holding, { sandbox: { failure: "older" } }, older)).toBeUndefined();
    expect(await store.renew(older)).toBeUndefined();
    await store.release(older);
    expect(await store.renew(newer)).toBeDefined();
  });

  test("a ticket is renewed as long as nobody took it, also late, and not when it was given back", async () => {
    const { store } = context();
    const holding = await insert(store);
    const late = await must(store.ticket("s1", { owner: "me", ttlMs: 0 }));
    const renewed = await must(store.renew({ ...late, ttlMs: 60_000 }));
    expect(renewed).toMatchObject({ no: late.no, ttlMs: 60_000 });
    expect(renewed.until).toBeGreaterThan(late.until);
    expect(await store.ticket("s1", minute)).toBeUndefined();
    await store.release(renewed);
    expect(await store.renew(renewed)).toBeUndefined();
    expect(await store.save(holding, { sandbox: { failure: "late" } }, renewed)).toBeUndefined();
  });

  test("whoever works without a ticket is guarded by the version alone", async () => {
    const { store } = context();
    const holding = await insert(store);
    const ticket = await must(store.ticket("s1", minute));
    const changed = await saved(store, holding, { sandbox: { lastUsedAt: 2_000 } });
    expect(await store.save(holding, { sandbox: { failure: "older" } }, ticket)).toBeUndefined();
    await saved(store, changed, { sandbox: { failure: "newer" } }, ticket);
  });

  test("what somebody works on is due again when the ticket's time is over", async () => {
    const { store } = context();
    await insertReserved(store);
    expect(await store.nextDueAt({ except: [] })).toBe(1_000);
    const [ticket] = await store.takeDue({ ...minute, ...all });
    expect(await store.nextDueAt({ except: [] })).toBe(ticket?.until as number);
    expect(await store.nextDueAt({ except: ["fake"] })).toBeUndefined();
    if (ticket !== undefined) await store.release(ticket);
    expect(await store.nextDueAt({ except: [] })).toBe(1_000);
  });

  test("every write computes anew when the row is due", async () => {
    const { store } = context();
    const holding = await insert(store);
    const due = () => store.nextDueAt({ except: [] });
    expect(await due()).toBeUndefined();
    const turns = [{ turnId: "t", startedAt: 0, expiresAt: 900 }];
    const turned = await saved(store, holding, { sandbox: { turns } });
    expect(await due()).toBe(900);
    const reserved = await must(store.reserve(turned, newLease({ createdAt: 800 }), rules()));
    expect(await due()).toBe(800);
    const live = { phase: "live", idleCheckAt: 5_000 } as const;
    const used = await saved(store, reserved, { sandbox: { turns: [] }, leases: { i1: live } });
    expect(await due()).toBe(5_000);
    await saved(store, used, { sandbox: { desired: "stopped" }, leases: { i1: { phase: "stop_due" } } });
    expect(await due()).toBe(800);
  });
}
