import { expect, test } from "bun:test";
import { MAX_LAUNCH_FAILURES } from "@holdfast/core";
import { type Context, gone, insert, insertReserved, orphan, saved } from "./store-fixtures.ts";
import { snapshotRow } from "./store-snapshots.ts";

export function censusSuite(context: Context): void {
  test("the census counts sandboxes by state, instances that are not gone by phase, and snapshots", async () => {
    const { store, rawUnchecked } = context();
    expect(await store.census()).toEqual({ sandboxes: [], spares: [], leases: [], snapshots: [] });

    await insert(store, { id: "s1", name: "stopped" });
    const failed = await insert(store, { id: "s2", name: "failed" });
    await saved(store, failed, { sandbox: { launchFailures: MAX_LAUNCH_FAILURES } });
    await insertReserved(store, "s3");
    const ended = await insertReserved(store, "s4");
    await saved(store, ended, { leases: { "i-s4": gone } });
    const hunted = await insert(store, { id: "s5", name: "hunted", provider: "b" });
    await saved(store, hunted, { found: orphan({ sandboxId: "s5", provider: "b", phase: "debt" }) });
    const newer = await insertReserved(store, "s6");
    await saved(store, newer, { sandbox: { desired: "deleted" } });
    await rawUnchecked("UPDATE instance SET phase = 'of-a-newer-version' WHERE instance_id = 'i-s6'");
    await store.insertSnapshot(snapshotRow(), {});

    const { sandboxes, leases, snapshots } = await store.census();
    const byState = sandboxes.map(({ provider, state, count }) => `${provider} ${state} ${count}`);
    expect(byState.sort()).toEqual([
      ...["b stopped 1", "fake creating 1", "fake deleting 1", "fake failed 1", "fake stopped 2"],
    ]);
    expect([...leases].sort((a, b) => a.phase.localeCompare(b.phase))).toEqual([
      { provider: "b", phase: "debt", count: 1, memoryBytes: 100, diskBytes: 10 },
      { provider: "fake", phase: "quarantined", count: 1, memoryBytes: 100, diskBytes: 10 },
      { provider: "fake", phase: "reserved", count: 1, memoryBytes: 100, diskBytes: 10 },
    ]);
    expect(snapshots).toEqual([{ provider: "fake", state: "making", count: 1 }]);
  });
}
