import { expect, test } from "bun:test";
import { type Context, insert, insertReserved, must, storeOf } from "./store-fixtures.ts";

const minute = { owner: "me", ttlMs: 60_000 };

export function jobSuite(context: Context): void {
  test("a job is there once, taken by one server, and remembers what its last run left", async () => {
    const under = context();
    const { store } = under;
    await store.addJob("sweep", 100);
    await store.addJob("sweep", 50);
    expect(await store.nextDueAt({ except: [] })).toBe(100);
    const taken = await Promise.all([0, 1, 2].map((i) => storeOf(under, i).takeJobs(minute)));
    const [job, ...others] = taken.flat();
    expect(others).toEqual([]);
    expect(job).toEqual({
      name: "sweep",
      ticket: { key: "job:sweep", owner: "me", no: 1, until: expect.any(Number), ttlMs: 60_000 },
      readAt: expect.any(Number),
      memory: {},
    });
    if (job === undefined) return;
    expect(await store.nextDueAt({ except: [] })).toBe(job.ticket.until);
    await store.hurryJob("sweep");
    expect(await store.takeJobs(minute)).toEqual([]);
    await store.finishJob(job, { dueAt: job.readAt + 600_000, memory: { seen: 3 } });
    expect(await store.takeJobs(minute)).toEqual([]);
    expect(await store.nextDueAt({ except: [] })).toBe(job.readAt + 600_000);
    await store.hurryJob("sweep");
    expect(await store.takeJobs(minute)).toMatchObject([{ memory: { seen: 3 }, ticket: { no: 2 } }]);
  });

  test("a job under a stale ticket is neither finished nor renewed nor given back", async () => {
    const { store } = context();
    await store.addJob("sweep", 1);
    const [stale] = await store.takeJobs({ owner: "me", ttlMs: 0 });
    const [current] = await store.takeJobs({ owner: "you", ttlMs: 60_000 });
    if (stale === undefined || current === undefined) throw new Error("no job was taken");
    await store.finishJob(stale, { dueAt: 7, memory: { stale: true } });
    expect(await store.renew(stale.ticket)).toBeUndefined();
    await store.release(stale.ticket);
    expect(await store.takeJobs(minute)).toEqual([]);
    expect(await store.renew(current.ticket)).toMatchObject({ key: "job:sweep", no: current.ticket.no });
    await store.release(current.ticket);
    expect(await store.takeJobs(minute)).toMatchObject([{ memory: {} }]);
  });

  test("of a host only what is named is changed", async () => {
    const { store } = context();
    const host = {
      failures: 2,
      nextProbeAt: 9,
      lastError: "no route",
      lastSeenAt: 4,
      closedBecause: null,
    };
    expect(await store.saveHost("b", host)).toEqual({ ...host, provider: "b" });
    await store.saveHost("a", { lastSeenAt: 7 });
    await store.saveHost("b", { closedBecause: "EROFS" });
    await store.saveHost("b", { failures: 3, nextProbeAt: null });
    await store.saveHost("b", {});
    const blank = { failures: 0, nextProbeAt: null, lastError: null, lastSeenAt: null, closedBecause: null };
    expect(await store.hosts()).toEqual([
      { ...blank, provider: "a", lastSeenAt: 7 },
      { ...host, provider: "b", failures: 3, nextProbeAt: null, closedBecause: "EROFS" },
    ]);
  });

  test("time that nobody saw is given back to all that waits on that provider, and by one server alone", async () => {
    const under = context();
    const { store } = under;
    const held = await insertReserved(store, "s1");
    const turn = { turnId: "t", startedAt: 1, expiresAt: 900 };
    await insert(store, { id: "s2", name: "two", turns: [turn] });
    const elsewhere = await insert(store, { id: "s3", name: "three", provider: "other", turns: [turn] });
    await store.saveHost("fake", { lastSeenAt: 1_000 });
    const unseen = { from: 1_000, to: 1_400 };
    const answers = await Promise.all([0, 1, 2].map((i) => storeOf(under, i).giveBack("fake", unseen)));
    const given = answers.filter((moved) => moved !== undefined);
    expect(given.map((moved) => moved.map(({ sandboxId }) => sandboxId))).toEqual([["s1", "s2"]]);
    const now = await must(store.holding("s1"));
    expect(given[0]?.[0]).toEqual({ ...now, readAt: expect.any(Number) });
    expect([now.version, now.lease?.notAfter]).toEqual([held.version + 1, (held.lease?.notAfter ?? 0) + 400]);
    expect((await store.holding("s2"))?.sandbox.turns).toEqual([{ ...turn, expiresAt: 1_300 }]);
    expect((await store.holding("s3"))?.version).toBe(elsewhere.version);
    expect(await store.hosts()).toMatchObject([{ provider: "fake", lastSeenAt: 1_400 }]);
    expect(await store.giveBack("other", unseen)).toBeUndefined();

    await insert(store, { id: "s4", name: "four" });
    await store.giveBack("fake", { from: 1_400, to: 700 });
    const createdAt = (await must(store.holding("s1"))).lease?.createdAt;
    expect([createdAt, (await store.holding("s4"))?.sandbox.createdAt]).toEqual([700, 700]);
  });
}
