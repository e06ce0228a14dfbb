import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  type FoundSnapshot,
  type Holding,
  type Lease,
  noteOf,
  type SnapshotRow,
  type SnapshotVault,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { refOf } from "./effects.ts";
import { TestWorld } from "./test-world.ts";

const content = { parts: [{ name: "workspace", files: 1, sizeBytes: 5 }], checksum: "sha256:00" };

/** Snapshots in memory; `fails` until it is taken back. */
class FakeVault implements Pick<SnapshotVault, "make" | "remove" | "discover" | "removeDrafts"> {
  readonly kept = new Map<string, FoundSnapshot>();
  fails: string | undefined;
  isEmpty = false;
  /** A copy takes until then. */
  until: Promise<void> = Promise.resolve();
  attempts = 0;

  make: SnapshotVault["make"] = async (ref, _of, note) => {
    this.attempts++;
    await this.until;
    if (this.fails !== undefined) throw new Error(this.fails);
    if (this.isEmpty) throw new HoldfastError("wrong_state", "it has no disk");
    this.kept.set(ref.snapshotId, { ref, note, content });
    return content;
  };
  remove: SnapshotVault["remove"] = async ({ snapshotId }) => {
    this.kept.delete(snapshotId);
    return { state: "absent", detail: "not there" };
  };
  discover: SnapshotVault["discover"] = async () => [...this.kept.values()];
  removeDrafts: SnapshotVault["removeDrafts"] = async () => undefined;
}

let world: TestWorld;
let vault: FakeVault;
beforeEach(async () => {
  world = new TestWorld();
  vault = new FakeVault();
  Object.assign(world.provider, { snapshots: vault });
  await world.server.start();
});
afterEach(() => world.close());

async function reapable(name: string): Promise<void> {
  const policy = { lifetimeSeconds: 60, onIdle: "remove", snapshotOnReap: true } as const;
  const holding = await world.running(name, policy);
  world.provider.keeperOf(refOf(holding.lease)).idleForMs = 3_600_000;
}

test("the reaper takes no files that it could not copy, says why, and tries again; a user's own deletion does not wait", async () => {
  await reapable("idle");
  vault.fails = "no space left";
  await world.clock.pass(70_000);
  const { why } = await world.server.why("idle");
  expect(why.failure).toBe("its files are not removed before they are copied: no space left");
  expect([await world.isGone("idle"), vault.kept.size]).toEqual([false, 0]);

  vault.fails = undefined;
  await world.clock.pass(30_000);
  expect(await world.isGone("idle")).toBe(true);
  const { snapshots } = await world.server.snapshots.list({ limit: 10 });
  expect(snapshots).toMatchObject([
    { origin: "reap", phase: "ready", name: expect.stringMatching(/^auto-.*-g1$/) },
  ]);

  await reapable("asked");
  await world.server.sandboxes.delete("asked", { mode: "graceful", waitMs: 0 });
  await world.clock.pass(1_000);
  expect([await world.isGone("asked"), vault.kept.size]).toEqual([true, 1]);
});

test("a copy that fails is tried again at growing intervals, which a restart does not shorten; who wants it gone need not wait", async () => {
  await reapable("idle");
  vault.fails = "no space left";
  await world.clock.pass(100_000);
  expect(vault.attempts).toBe(4);
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  await world.clock.pass(3_600_000);
  // 2, 5, 15, 30 and 60 seconds, then 1, 2, 5, 10 and 30 minutes, then every hour.
  expect(vault.attempts).toBe(11);
  const { holding, why } = await world.server.why("idle");
  expect(why.next).toStartWith("its disk could not be removed 11 times; the next attempt is at ");
  const told = await world.server.sandboxes.timeline("idle", { since: 0, limit: 99 });
  const attempts = told.flatMap(({ type, detail }) =>
    type === "disk_not_removed" ? [detail?.attempts] : [],
  );
  expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);

  expect(await world.server.sandboxes.delete("idle", { mode: "graceful", waitMs: 1_000 })).toBe("gone");
  expect((await world.store.tombstone(holding.sandboxId))?.cause).toBe("delete_requested");
});

test("a copy goes on though its progress could not be written, or was without our hearing of it", async () => {
  const parent = await world.running("parent");
  const copying = Promise.withResolvers<void>();
  vault.until = copying.promise;
  const { id } = await world.server.snapshots.begin(parent, {}, { origin: "request" });
  const save = world.store.saveSnapshot.bind(world.store);
  let words = 0;
  world.store.saveSnapshot = async (row, change) => {
    if (++words === 1) throw new HoldfastError("unavailable", "the database is busy");
    const saved = await save(row, change);
    if (words === 2) throw new HoldfastError("unavailable", "the answer was lost");
    return saved;
  };
  await world.clock.pass(4_000);
  expect(words).toBeGreaterThan(3);
  copying.resolve();
  expect((await world.server.snapshots.settled(id)).phase).toBe("ready");
});

test("a snapshot that waits for a sandbox that never begins is looked at ever more seldom", async () => {
  const parent = await world.running("parent");
  const { id } = await world.server.snapshots.begin(parent, {}, { origin: "request" });
  await world.server.snapshots.ready(id);
  world.provider.faults.launch = "fails";
  await world.server.sandboxes.create({ name: "child", fromSnapshot: id });
  await world.server.sandboxes.stop("child").catch(() => undefined);
  expect(await world.server.snapshots.delete(id)).toBe("deleting");
  const { removeDrafts } = vault;
  let looks = 0;
  vault.removeDrafts = async (signal) => {
    looks++;
    await removeDrafts(signal);
  };
  await world.clock.pass(600_000);
  expect(looks).toBeLessThan(30);
});

test("where no files are left, none are waited for, and that is told", async () => {
  await reapable("idle");
  const { sandboxId } = (await world.store.find("idle")) as Holding;
  vault.isEmpty = true;
  await world.clock.pass(70_000);
  expect([await world.isGone("idle"), vault.attempts, vault.kept.size]).toEqual([true, 1, 0]);
  const told = await world.store.timeline(sandboxId, { since: 0, limit: 99 });
  expect(told.find(({ type }) => type === "snapshot_failed")?.detail).toMatchObject({
    error: "there is nothing to copy: it has no disk",
  });
});

const ends = [
  ["the end of its turn", async () => void (await world.server.turns.end("short", await turnIn("short")))],
  ["a death that nobody ordered", async () => world.provider.kill(refOf(await leaseOf("short")))],
] as const;

test.each(ends)("%s takes no files of an ephemeral one before they are copied", async (_, end) => {
  await world.running("short", { persistent: false, snapshotOnReap: true });
  await end();
  await world.clock.pass(5_000);
  const { snapshots } = await world.server.snapshots.list({ limit: 10 });
  expect(snapshots).toMatchObject([{ origin: "reap", phase: "ready" }]);
  expect((await world.store.find("short"))?.sandbox.hasDisk ?? false).toBe(false);
});

async function turnIn(name: string): Promise<string> {
  return (await world.server.turns.begin(name, {})).turn.turnId;
}

async function leaseOf(name: string): Promise<Lease> {
  const lease = (await world.store.find(name))?.lease;
  if (lease === undefined) throw new Error("it has no instance");
  return lease;
}

test("what another server was making when it died is ended by the next: whole, or failed", async () => {
  const { sandboxId } = await world.running("one");
  const making: Omit<SnapshotRow, "id" | "name"> = {
    tenantId: "default",
    provider: "fake",
    sandboxId,
    generation: 1,
    origin: "request",
    spec: {},
    labels: {},
    phase: "making",
    parts: [],
    checksum: null,
    copiedBytes: 0,
    createdAt: 0,
    expiresAt: null,
    failure: null,
    owner: "dead",
    busyUntil: 0,
    version: 1,
  };
  const half = await world.store.insertSnapshot({ ...making, id: "snap-half", name: "half" }, {});
  const whole = await world.store.insertSnapshot({ ...making, id: "snap-whole", name: "whole" }, {});
  const ref = { installationId: "ours", snapshotId: whole.id };
  vault.kept.set(whole.id, { ref, note: noteOf(whole), content });
  await world.clock.pass(120_000);
  expect(await world.server.snapshots.get(half.id)).toMatchObject({ phase: "failed" });
  expect(await world.server.snapshots.get(whole.id)).toMatchObject({ phase: "ready", ...content });
  expect(await world.server.snapshots.delete("whole")).toBe("gone");
  expect(vault.kept.size).toBe(0);
});

test("a fork that is sent again after its server died goes on with the same moment; one that nobody sends again is cleared away", async () => {
  const { sandboxId } = await world.running("parent");
  const asked = { asked: {}, idempotencyKey: "once" };
  // The server dies with one of two made.
  const { id } = await world.server.snapshots.begin(
    (await world.store.holding(sandboxId)) as Holding,
    { expiresInSeconds: 3600 },
    { origin: "fork", idempotencyKey: "fork once" },
  );
  await world.server.snapshots.ready(id);
  const child = { name: "child-1", provider: "fake", fromSnapshot: id };
  const first = await world.server.sandboxes.create(child, { idempotencyKey: "once:1" });
  await world.server.close();
  world.server = world.newServer();
  await world.server.start();
  const forks = await world.server.forks.fork("parent", { count: 2, name: "child" }, asked);
  expect(forks.map(({ sandbox }) => [sandbox.name, sandbox.spec.fromSnapshot])).toEqual([
    ["child-1", id],
    ["child-2", id],
  ]);
  expect([forks[0]?.sandboxId, vault.kept.size]).toEqual([first.sandboxId, 0]);

  const parent = (await world.store.holding(sandboxId)) as Holding;
  const left = await world.server.snapshots.begin(parent, {}, { origin: "fork" });
  await world.server.snapshots.ready(left.id);
  await world.clock.pass(20_000);
  expect(vault.kept.size).toBe(1);
  await world.clock.pass(60_000);
  expect([vault.kept.size, await world.store.snapshot(left.id)]).toEqual([0, undefined]);
});
