import { expect, test } from "bun:test";
import type { SnapshotRow } from "@holdfast/core";
import { type Context, insert, must, saved, storeOf } from "./store-fixtures.ts";

export function snapshotRow(over: Partial<SnapshotRow> = {}): SnapshotRow {
  return {
    id: "snap1",
    name: "before",
    tenantId: "default",
    provider: "fake",
    sandboxId: "s1",
    generation: 3,
    origin: "request",
    spec: { network: "none" },
    labels: { team: "web" },
    phase: "making",
    parts: [],
    checksum: null,
    copiedBytes: 0,
    createdAt: 1_000,
    expiresAt: 9_000,
    failure: null,
    owner: "srv1",
    busyUntil: 2_000,
    version: 1,
    ...over,
  };
}

const whole = {
  phase: "ready",
  parts: [{ name: "workspace", files: 2, sizeBytes: 2 ** 40 }],
  checksum: "sha256:00",
} as const;

export function snapshotSuite(context: Context): void {
  test("a snapshot is written once under its name and its key, found by both, listed in order, and saved by version", async () => {
    const under = context();
    const { store } = under;
    const row = snapshotRow();
    const keyed = await Promise.all(
      [0, 1, 2].map((i) => storeOf(under, i).insertSnapshot(row, { idempotencyKey: "k" })),
    );
    expect(keyed).toEqual([0, 1, 2].map(() => ({ ...row, usedBy: 0 })));
    const other = snapshotRow({ id: "snap2", name: "other", sandboxId: "s2", provider: "b", labels: {} });
    await store.insertSnapshot(other, {});
    await expect(store.insertSnapshot(snapshotRow({ id: "snap3" }), {})).rejects.toMatchObject({
      code: "already_exists",
    });

    expect(await store.snapshot("snap1")).toEqual({ ...row, usedBy: 0 });
    expect(await store.snapshot("before")).toEqual({ ...row, usedBy: 0 });
    expect(await store.snapshot("none")).toBeUndefined();
    const ids = async (filter: object) =>
      (await store.snapshots({ limit: 10, ...filter })).snapshots.map(({ id }) => id);
    expect(await ids({})).toEqual(["snap1", "snap2"]);
    expect(await ids({ sandboxId: "s2" })).toEqual(["snap2"]);
    expect(await ids({ provider: "fake" })).toEqual(["snap1"]);
    expect(await ids({ label: { key: "team", value: "web" } })).toEqual(["snap1"]);
    const page = await store.snapshots({ limit: 1 });
    expect(page.snapshots.map(({ id }) => id)).toEqual(["snap1"]);
    expect(await ids({ after: page.next })).toEqual(["snap2"]);

    const ready = await must(store.saveSnapshot(row, whole));
    expect(ready).toEqual({ ...row, ...whole, version: 2, usedBy: 0 });
    expect(await store.saveSnapshot(row, { phase: "failed" })).toBeUndefined();
  });

  test("what a sandbox begins with is there until the sandbox has its own disk, and nothing begins with what is going", async () => {
    const { store } = context();
    const making = await store.insertSnapshot(snapshotRow(), {});
    await expect(insert(store, { restoresFrom: "snap1" })).rejects.toMatchObject({ code: "wrong_state" });
    await expect(insert(store, { restoresFrom: "none" })).rejects.toMatchObject({ code: "not_found" });
    expect(await store.find("s1")).toBeUndefined();

    const ready = await must(store.saveSnapshot(making, whole));
    const holding = await insert(store, { restoresFrom: "snap1" });
    expect(holding.sandbox.restoresFrom).toBe("snap1");
    expect(await store.forgetSnapshot(ready)).toBe(false);
    const going = await must(store.saveSnapshot(ready, { phase: "deleting" }));
    expect(going.usedBy).toBe(1);
    expect(await store.forgetSnapshot(going)).toBe(false);
    await expect(insert(store, { id: "s2", name: "two", restoresFrom: "snap1" })).rejects.toMatchObject({
      code: "wrong_state",
    });
    await saved(store, holding, { sandbox: { restoresFrom: null } });
    expect(await store.forgetSnapshot(going)).toBe(true);
    expect(await store.snapshot("snap1")).toBeUndefined();
  });
}
