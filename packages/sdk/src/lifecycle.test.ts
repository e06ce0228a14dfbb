import { afterEach, beforeEach, expect, test } from "bun:test";
import { Client, Operator, Sandbox, type SandboxEvent } from "./index.ts";
import type { FakeLifecycle } from "./testing/fake-lifecycle.ts";
import { FakeServer } from "./testing/fake-server.ts";

let fake: FakeServer;
beforeEach(() => {
  fake = new FakeServer();
});
afterEach(() => fake.close());

function connection() {
  return { url: "http://fake", token: fake.token, fetch: fake.fetch, patienceMs: 2000 };
}

async function made(): Promise<{ sbx: Sandbox; behind: FakeLifecycle }> {
  const sbx = await Sandbox.create({ name: "one", lifetimeSeconds: 60, onIdle: "remove" }, connection());
  await sbx.events();
  const behind = fake.lifecycles.get(sbx.id);
  if (behind === undefined) throw new Error("the fake has no such sandbox");
  return { sbx, behind };
}

test("a sandbox is made with its policy, and the policy can be changed", async () => {
  const { sbx } = await made();
  expect(sbx.info).toMatchObject({ lifetimeSeconds: 60, onIdle: "remove", persistent: true, spec: {} });
  await sbx.update({ lifetimeSeconds: 7200, labels: { team: "web" } });
  expect(sbx.info).toMatchObject({ lifetimeSeconds: 7200, onIdle: "remove", labels: { team: "web" } });
  const before = sbx.info.lastUsedAt;
  await Bun.sleep(2);
  expect((await sbx.touch()).info.lastUsedAt > before).toBe(true);
});

test("calls are a part of the turn that was begun last, while it is open", async () => {
  const { sbx, behind } = await made();
  await sbx.exec("true");
  const outer = await sbx.beginTurn();
  {
    await using inner = await sbx.beginTurn({ turnId: "inner" });
    expect(inner.turnId).toBe("inner");
    await sbx.exec("true");
  }
  await (await sbx.startProcess("true")).wait();
  await outer.end();
  await outer.end();
  await sbx.exec("true");
  expect(behind.workTurns).toEqual([null, "inner", outer.turnId, null]);
  expect(sbx.info.openTurns).toBe(0);
});

test("a turn that one process began can be ended by another, and its calls can be a part of it", async () => {
  const { sbx, behind } = await made();
  const { turnId } = await sbx.beginTurn();
  const client = (await Client.connect(connection())).carrying(() => ({ turn: turnId }));
  const elsewhere = await Sandbox.get("one", { client });
  await elsewhere.exec("true");
  expect(await elsewhere.endTurn(turnId)).toMatchObject({ turnId, endedAt: expect.any(String) });
  expect(behind.workTurns).toEqual([turnId]);
});

test("a turn whose answers were lost is one turn, and ends once", async () => {
  const { sbx, behind } = await made();
  fake.faults.loseAnswers = 1;
  const turn = await sbx.beginTurn();
  fake.faults.loseAnswers = 1;
  await turn.end();
  expect([...behind.turns.keys()]).toEqual([turn.turnId]);
});

test("a turn of a sandbox that was deleted is over without an error", async () => {
  const { sbx } = await made();
  await using _turn = await sbx.beginTurn();
  await sbx.delete();
});

test("a claim travels with every call, is renewed while it is held, and others are refused", async () => {
  const { sbx, behind } = await made();
  const other = await Sandbox.get("one", connection());
  const claim = await sbx.claim({ holder: "a", ttlSeconds: 0.06 });
  expect((await sbx.exec("true")).exitCode).toBe(0);
  expect(await other.exec("true").catch((error) => error)).toMatchObject({ code: "claim_held" });
  expect(await other.claim({ holder: "b" }).catch((error) => error)).toMatchObject({ code: "claim_held" });
  await until(() => (behind.claim?.renewals ?? 0) >= 2);
  expect(claim.lost.aborted).toBe(false);
  await claim.release();
  await claim.release();
  expect(behind.claim).toBeUndefined();
  expect((await other.exec("true")).exitCode).toBe(0);
});

test("who was taken over is told, and its calls are refused until it lets go", async () => {
  const { sbx, behind } = await made();
  const claim = await sbx.claim({ holder: "a", ttlSeconds: 0.06 });
  const other = await Sandbox.get("one", connection());
  await using theirs = await other.claim({ holder: "b", takeover: true });
  expect(theirs.fence).toBeGreaterThan(claim.fence);
  await new Promise((resolve) => claim.lost.addEventListener("abort", resolve));
  expect(claim.lost.reason).toMatchObject({ code: "claim_lost" });
  expect(await sbx.exec("true").catch((error) => error)).toMatchObject({ code: "claim_lost" });
  expect((await other.exec("true")).exitCode).toBe(0);
  await claim.release();
  expect(behind.claim?.holder).toBe("b");
  expect(await sbx.exec("true").catch((error) => error)).toMatchObject({ code: "claim_held" });
});

test("a claim that cannot be renewed in time counts as lost", async () => {
  const { sbx } = await made();
  const claim = await sbx.claim({ holder: "a", ttlSeconds: 0.06 });
  fake.faults.refuse = Number.POSITIVE_INFINITY;
  await new Promise((resolve) => claim.lost.addEventListener("abort", resolve));
  expect(claim.lost.reason).toMatchObject({
    code: "claim_lost",
    message: expect.stringContaining("in time"),
  });
  fake.faults.refuse = 0;
});

test("release ends this handle's turns and its claim; of a deleted sandbox there is nothing to release", async () => {
  const { sbx, behind } = await made();
  {
    await using held = await Sandbox.get("one", connection());
    await held.beginTurn();
    await held.claim({ holder: "a" });
  }
  expect(behind.claim).toBeUndefined();
  expect([...behind.turns.values()].filter(({ endedAt }) => endedAt === undefined)).toEqual([]);
  expect(fake.requests.at(-2)).toBe(`POST /v1/sandboxes/${sbx.id}/release`);
  await sbx.delete();
  await sbx.release();
});

test("the timeline is followed over cut connections, until the sandbox is deleted", async () => {
  const { sbx, behind } = await made();
  const seen: SandboxEvent[] = [];
  const following = (async () => {
    for await (const event of sbx.followEvents()) seen.push(event);
  })();
  await until(() => seen.length === 1);
  behind.cut();
  behind.record("stopping");
  await until(() => seen.length === 2);
  expect(fake.requests.filter((request) => request.endsWith("/events"))).toHaveLength(3);
  await sbx.delete();
  await following;
  expect(seen.map(({ seq, type }) => [seq, type])).toEqual([
    [1, "created"],
    [2, "stopping"],
    [3, "deleted"],
  ]);
});

test("a released handle follows no timeline any more", async () => {
  const { sbx } = await made();
  const following = (async () => {
    for await (const _event of sbx.followEvents()) await sbx.release();
  })();
  expect((await following.catch((error) => error)).name).toBe("AbortError");
});

test("why, and what an operator does", async () => {
  const { sbx, behind } = await made();
  expect(await sbx.why()).toMatchObject({ sandbox: { name: "one" }, heldAwakeBy: ["command c1 is running"] });
  const operator = await Operator.connect(connection());
  expect(await operator.sweep({ dryRun: true })).toMatchObject({ dryRun: true, providers: [{ adopted: 1 }] });
  await operator.abandon("one", { reason: "the host burned down" });
  expect(behind.events.at(-1)).toMatchObject({
    type: "abandoned",
    detail: { reason: "the host burned down" },
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}
