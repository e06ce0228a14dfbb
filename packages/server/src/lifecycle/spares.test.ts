import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Holding, isSpare, type Lease, NOBODY } from "@holdfast/core";
import type { CreateSandbox } from "@holdfast/protocol";
import type { ChangeNews } from "./changes.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld({ spares: 1 });
  await world.server.start();
});
afterEach(() => world.close());

async function begin(...options: ConstructorParameters<typeof TestWorld>): Promise<void> {
  await world.close();
  world = new TestWorld(...options);
  await world.server.start();
}

type Running = Holding & { lease: Lease };

async function create(
  request: CreateSandbox = {},
  options: { idempotencyKey?: string } = {},
): Promise<Running> {
  const { sandboxes } = world.server;
  const { holding } = await sandboxes.wake(await sandboxes.create(request, options));
  return holding as Running;
}

const spares = () => world.store.spares("fake");

/** The one that demand has made. */
async function spare(): Promise<Running> {
  await world.clock.until(async () => (await spares())[0]?.lease?.phase === "live", { withinMs: 5_000 });
  return (await spares())[0] as Running;
}

const keeperOf = ({ lease }: Running) => world.provider.keeperOf(lease);
const restart = async () => {
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
};
const isGone = async (sandboxId: string) => (await world.store.holding(sandboxId)) === undefined;
/** Whoever prepares is done. */
const later = () => world.clock.pass(2_000);
const codeOf = (work: Promise<unknown>) => work.then(() => "fine").catch(({ code }) => code);

describe("demand makes a spare", () => {
  test("a while after a create, one like it is launched; an idle server has none", async () => {
    await later();
    expect(world.provider.launches).toEqual([]);
    await create({ network: "none", env: { KEY: "secret" }, labels: { a: "b" }, maxLifetimeSeconds: 7 });
    expect(await spares()).toEqual([]);
    const { sandbox, lease } = await spare();
    expect(sandbox).toMatchObject({ tenantId: NOBODY, spec: { network: "none" }, labels: {} });
    expect(lease.tenantId).toBe(NOBODY);
    expect(keeperOf(await spare()).admitted).toMatchObject({ spare: true, env: {}, maxLifetimeSeconds: 300 });
    await later();
    expect(await spares()).toHaveLength(1);
  });

  test.each([
    ["a name", { name: "named" }],
    ["nothing, where there are to be none", {}],
  ])("not by a create with %s", async (why, request) => {
    if (!("name" in request)) await begin({ spares: 0 });
    await create(request);
    await later();
    expect([why, (await spares()).length]).toEqual([why, 0]);
  });

  test("nothing is launched ahead while somebody waits for a sandbox, nor right after", async () => {
    await create();
    const frozen = Promise.withResolvers<void>();
    const launch = world.provider.launch.bind(world.provider);
    world.provider.launch = async (ref, plan) => {
      await frozen.promise;
      return launch(ref, plan);
    };
    const slow = create({ name: "slow" });
    await later();
    expect(await spares()).toEqual([]);
    frozen.resolve();
    await slow;
    await world.clock.pass(10);
    expect(await spares()).toEqual([]);
    await spare();
  });

  test("another shape takes its place, and its end has its evidence", async () => {
    await create();
    const old = await spare();
    await create({ network: "none" });
    await world.clock.until(
      async () => (await spares())[0]?.sandbox.spec.network === "none" && (await isGone(old.sandboxId)),
      { withinMs: 5_000 },
    );
    expect(await spares()).toHaveLength(1);
    expect(await endOf(old)).toEqual(["spare_given_up", "exited", "another shape is asked for"]);
  });

  test("nobody asks for another: after five minutes it goes, with its disk", async () => {
    const mine = await create();
    const old = await spare();
    await world.clock.pass(290_000);
    expect(await spares()).toHaveLength(1);
    await world.clock.pass(30_000);
    expect(await spares()).toEqual([]);
    expect(await world.store.tombstone(old.sandboxId)).toMatchObject({ cause: "max_lifetime" });
    const left = new Set((await world.provider.discover()).map(({ ref }) => ref.sandboxId));
    expect([...left]).toEqual([mine.sandboxId]);
  });

  test("one that fails to start leaves nothing", async () => {
    await create();
    world.provider.faults.launch = "fails";
    const { launch } = world.provider;
    const tried: string[] = [];
    world.provider.launch = (ref, plan) => {
      tried.push(ref.sandboxId);
      return launch.call(world.provider, ref, plan);
    };
    await later();
    expect((await world.store.census()).spares).toEqual([]);
    expect(await world.store.tombstone(tried.join())).toMatchObject({ cause: "launch_failed" });
  });
});

describe("a create that fits gets it", () => {
  test("without a launch, as it would get a new one: its policy, its environment, its times", async () => {
    await create();
    const { lease, sandboxId } = await spare();
    await world.clock.pass(100_000);
    const launches = world.provider.launches.length;
    const request = { env: { A: "1" }, labels: { a: "b" }, maxLifetimeSeconds: 600, persistent: false };
    const given = await create(request);
    const now = world.clock.wall();
    expect(world.provider.launches.length).toBe(launches);
    expect(given.lease).toMatchObject({
      ...{ instanceId: lease.instanceId, generation: 1, fence: 1, tenantId: "default" },
      ...{ admittedAt: now, hardStopAt: now + 600_000, idleCheckAt: now + 1_800_000 },
    });
    expect(given.sandbox).toMatchObject({
      ...{ name: sandboxId, spec: { env: { A: "1" } }, labels: { a: "b" }, createdAt: now, lastUsedAt: now },
      policy: { persistent: false, filesystem: "ephemeral", onIdle: "remove" },
    });
    const { admitted } = keeperOf(given);
    expect(admitted).toMatchObject({ spare: false, env: { A: "1" }, lifetimeSeconds: 1800 });
    // By its own clock it is older.
    expect(admitted?.maxLifetimeSeconds).toBeGreaterThanOrEqual(700);
    const { turns } = world.server;
    const { turn } = await turns.begin(sandboxId, {});
    await turns.end(sandboxId, turn.turnId);
    await world.clock.until(() => isGone(sandboxId), { withinMs: 5_000 });
  });

  test.each<[string, CreateSandbox]>([
    ["a name", { name: "named" }],
    ["another network", { network: "none" }],
    ["another limit", { limits: { cpus: 1 } }],
    ["another lifetime, which its instance carries", { lifetimeSeconds: 60 }],
  ])("not one with %s", async (_, request) => {
    await create();
    const { sandboxId } = await spare();
    expect((await create(request)).sandboxId).not.toBe(sandboxId);
  });

  test("two at once: one gets it, the other a new one", async () => {
    await create();
    const { sandboxId } = await spare();
    const both = await Promise.all([create(), create()]);
    const ids = both.map((one) => one.sandboxId);
    expect(new Set(ids).size).toBe(2);
    expect(ids).toContain(sandboxId);
  });

  test("two servers, one spare: never the same", async () => {
    await begin({ spares: 1 }, { sharedBy: "several" });
    await create();
    const { sandboxId } = await spare();
    const another = world.newServer();
    await another.start();
    const made = await Promise.all([world.server.sandboxes.create({}), another.sandboxes.create({})]);
    const ids = made.map((one) => one.sandboxId);
    expect(new Set(ids).size).toBe(2);
    expect(ids).toContain(sandboxId);
    await another.close();
  });

  test("the same key gives the same sandbox, and takes no other", async () => {
    await create();
    await spare();
    const key = { idempotencyKey: "once" };
    const first = await create({}, key);
    const next = await spare();
    expect((await create({}, key)).sandboxId).toBe(first.sandboxId);
    expect((await spares()).map(({ sandboxId }) => sandboxId)).toEqual([next.sandboxId]);
  });

  test("its keeper has just died: the caller gets a new one, and it goes with evidence", async () => {
    await create();
    const dead = await spare();
    world.provider.kill(dead.lease);
    const mine = await create();
    expect([mine.sandboxId === dead.sandboxId, mine.lease.generation]).toEqual([false, 1]);
    await world.clock.until(() => isGone(dead.sandboxId), { withinMs: 10_000 });
    await later();
    expect(await world.store.tombstone(dead.sandboxId)).toMatchObject({ cause: "keeper_lost" });
  });

  test("its keeper has died, and nobody has noticed yet: the same", async () => {
    await create();
    const dead = await spare();
    const { cutLines } = world;
    world.cutLines = () => {};
    world.provider.kill(dead.lease);
    const mine = await create();
    world.cutLines = cutLines;
    expect([mine.sandboxId === dead.sandboxId, mine.lease.generation]).toEqual([false, 1]);
    await later();
    expect(await world.store.tombstone(dead.sandboxId)).toMatchObject({ cause: "keeper_lost" });
  });

  test("its keeper does not hear of it: it is reached anew, and told then", async () => {
    await create();
    const one = await spare();
    const { admit } = world;
    world.admit = () => Promise.reject(new Error("cut off"));
    const made = await world.server.sandboxes.create({ env: { A: "1" } });
    world.admit = admit;
    expect([made.sandboxId, keeperOf(one).admitted?.spare]).toEqual([one.sandboxId, true]);
    const { holding } = await world.server.sandboxes.wake(made);
    expect(holding.sandbox.generation).toBe(1);
    expect(keeperOf(one).admitted).toMatchObject({ spare: false, env: { A: "1" } });
  });
});

describe("a server that ends", () => {
  test("by a crash: the next one adopts the spare, and gives it away", async () => {
    await create();
    const { sandboxId } = await spare();
    await restart();
    expect((await create()).sandboxId).toBe(sandboxId);
  });

  test("by a crash right after the commit: the next one tells its keeper", async () => {
    await create();
    const one = await spare();
    const rules = { tenantQuota: null, slots: null, minFreeDisk: NO_FLOOR, closedBecause: null };
    const row = { ...(await create({ name: "like" })).sandbox, spec: { env: { A: "1" } } };
    const entry = { type: "created" };
    await world.store.give(one, row, { entry, rules: { ...rules, measured: world.provider.room } });
    expect(keeperOf(one).admitted?.spare).toBe(true);
    await restart();
    expect(keeperOf(one).admitted).toMatchObject({ spare: false, env: { A: "1" } });
    expect((await world.server.sandboxes.use(one.sandboxId)).holding.lease?.instanceId).toBe(
      one.lease.instanceId,
    );
  });

  test("in order: spares go with it, and sandboxes stay", async () => {
    const mine = await create();
    const one = await spare();
    await world.server.endBound({ ms: 1_000 });
    expect(await spares()).toEqual([]);
    expect(await endOf(one)).toEqual(["spare_given_up", "exited", "its server ends"]);
    expect(world.provider.refs().map(({ sandboxId }) => sandboxId)).toEqual([mine.sandboxId]);
  });

  test("and rows that forgot whose it is: it is never given to another, and becomes a sandbox again", async () => {
    await create();
    const one = await spare();
    keeperOf(one).isOwned = true;
    await restart();
    expect(await spares()).toEqual([]);
    const { sandbox, lease } = await world.server.sandboxes.get(one.sandboxId);
    expect(sandbox).toMatchObject({ policy: { onIdle: "stop" }, labels: { "holdfast.recovered": "true" } });
    expect([isSpare(sandbox), lease?.phase, lease?.hardStopAt]).toEqual([false, "live", null]);
    expect(keeperOf(one).admitted).toMatchObject({ spare: false, maxLifetimeSeconds: null });
  });
});

describe("a spare costs nobody anything", () => {
  test("it is not made where it would take the last room", async () => {
    await begin({ spares: 1, slots: 2 });
    await create();
    await later();
    expect(await spares()).toEqual([]);
  });

  test("whoever needs its room has it: a create", async () => {
    await begin({ spares: 1, slots: 3 });
    await create();
    const one = await spare();
    await create({ name: "two" });
    await create({ name: "three" });
    expect(await endOf(one)).toEqual(["spare_given_up", "exited", "room is needed"]);
    expect(await codeOf(create({ name: "four" }))).toBe("capacity_exhausted");
  });

  test("whoever needs its room has it: a stopped one that is used", async () => {
    await begin({ spares: 1, slots: 3 });
    await world.running("two");
    await world.server.sandboxes.stop("two");
    await create();
    await spare();
    await create({ name: "three" });
    await world.server.sandboxes.use("two");
    expect([await world.phaseOf("two"), (await spares()).length]).toEqual(["live", 0]);
  });

  test("it counts against no quota before it is somebody's, and then it does", async () => {
    await begin({ spares: 1, tenantQuota: 2 });
    await create();
    await spare();
    await create();
    const one = await spare();
    expect(await codeOf(create())).toBe("quota_exceeded");
    expect((await spares()).map(({ sandboxId }) => sandboxId)).toEqual([one.sandboxId]);
  });
});

test("to users it is not there: not by its id, not in a list, and nobody is told of it", async () => {
  const left = new AbortController();
  const told: string[] = [];
  const following = (async () => {
    for await (const news of world.server.changes.follow({ signal: left.signal }))
      if (news !== "quiet") told.push(idOf(news));
  })();
  const mine = await create();
  const one = await spare();
  const { sandboxes } = world.server;
  const { sandboxId } = one;
  expect(await codeOf(sandboxes.get(sandboxId))).toBe("not_found");
  expect(await codeOf(sandboxes.use(sandboxId))).toBe("not_found");
  expect(await codeOf(sandboxes.timeline(sandboxId, { since: 0, limit: 9 }))).toBe("not_found");
  expect(await codeOf(sandboxes.delete(sandboxId, { mode: "force", waitMs: 0 }))).toBe("not_found");
  expect((await sandboxes.list({ limit: 9 })).holdings.map((one) => one.sandboxId)).toEqual([mine.sandboxId]);
  expect((await world.server.leases({ limit: 9 })).map((lease) => isSpare(lease)).sort()).toEqual([
    false,
    true,
  ]);
  await world.clock.pass(320_000);
  expect(await isGone(sandboxId)).toBe(true);
  left.abort();
  await following;
  expect(new Set(told)).toEqual(new Set(["", mine.sandboxId]));
});

const NO_FLOOR = { bytes: 0, share: 0, inodeShare: 0 };

function idOf(news: ChangeNews): string {
  if (news.type === "resync") return "";
  return news.type === "gone" ? news.sandboxId : news.holding.sandboxId;
}

/** Why it was deleted, how that is known, and for whom. */
async function endOf({ sandboxId }: Running): Promise<unknown[]> {
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 99 });
  const [gone, givenUp] = ["gone", "given_up"].map((type) => entries.find((entry) => entry.type === type));
  const { cause } = (await world.store.tombstone(sandboxId)) ?? {};
  return [cause, gone?.detail?.evidence, givenUp?.detail?.because];
}
