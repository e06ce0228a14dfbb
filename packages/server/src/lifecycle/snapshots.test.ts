import { afterEach, beforeEach, expect, test } from "bun:test";
import { type FoundSnapshot, noteOf, type SnapshotRow, type SnapshotVault } from "@holdfast/core";
import { refOf } from "./effects.ts";
import { TestWorld } from "./test-world.ts";

const content = { parts: [{ name: "workspace", files: 1, sizeBytes: 5 }], checksum: "sha256:00" };

/** Snapshots in memory; `fails` until it is taken back. */
class FakeVault implements Pick<SnapshotVault, "make" | "remove" | "discover" | "removeDrafts"> {
  readonly kept = new Map<string, FoundSnapshot>();
  fails: string | undefined;

  make: SnapshotVault["make"] = async (ref, _of, note) => {
    if (this.fails !== undefined) throw new Error(this.fails);
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
