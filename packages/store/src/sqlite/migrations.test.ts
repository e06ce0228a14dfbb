import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dueAt, type Ledger } from "@holdfast/core";
import { migrations } from "./migrations.ts";
import { SqliteStore } from "./sqlite-store.ts";

const NOW = 1_000_000;

/** One sandbox in each phase, as version 0.1 wrote them; `next` is its next attempt's time. */
const released = [
  { phase: "reserved", next: null, admitted: null, due: 10, settle: null },
  { phase: "creating", next: 3_000, admitted: null, due: 3_000, settle: NOW + 60_000 },
  { phase: "starting", next: null, admitted: null, due: 10, settle: null },
  { phase: "live", next: null, admitted: 50, due: 10, settle: null },
  { phase: "stop_due", next: 4_000, admitted: 50, due: 4_000, settle: null },
  { phase: "stopping", next: null, admitted: null, due: 10, settle: NOW + 60_000 },
] as const;

test("scenario 56: a database of version 0.1 is carried over, in every phase, and everything is due as it should be", async () => {
  const { store, dispose } = openUpgraded();
  for (const { phase, next, admitted, due, settle } of released) {
    const ledger = (await store.ledger(phase)) as Ledger;
    expect(ledger.sandbox).toEqual(upgradedSandbox(phase));
    expect(ledger.lease).toEqual({
      instanceId: `i-${phase}`,
      installationId: "home",
      sandboxId: phase,
      tenantId: "default",
      provider: "local",
      generation: 3,
      fence: 4,
      origin: "launch",
      phase,
      secret: "s",
      limits: { state: "enforced" },
      reservation: { memoryBytes: 0, diskBytes: 0 },
      createdAt: 10,
      notAfter: 5_000,
      createSentAt: phase === "reserved" ? null : 10,
      settleUntil: settle,
      startupDeadlineAt: 5_000,
      admittedAt: admitted,
      idleCheckAt: null,
      hardStopAt: null,
      stopReason: null,
      stopMode: "graceful",
      attempts: 2,
      attemptDeadlineAt: null,
      nextAttemptAt: next,
      missingSince: null,
      lastError: "e",
      evidence: null,
    });
    expect(dueAt(ledger)).toBe(due);
  }
  // It compares what is written with what it should be, row by row.
  expect((await store.audit({ keepGoneMs: NOW, keepEntries: 9 })).repaired).toEqual([]);
  await dispose();
});

test("what had no instance is carried over, too: stopped, to be deleted, deleted", async () => {
  const { store, dispose } = openUpgraded();
  expect((await store.ledger("stopped"))?.lease).toBeUndefined();
  const gone = (await store.leasesOf("local")).filter(({ phase }) => phase === "gone");
  expect(gone.map(({ sandboxId, evidence }) => ({ sandboxId, evidence }))).toEqual([
    { sandboxId: "stopped", evidence: { kind: "exited", at: 7, detail: "pid 1" } },
  ]);
  expect(await store.unsettled()).toContain("deleting");
  expect(await store.tombstone("buried")).toEqual({
    sandboxId: "buried",
    name: "old",
    generation: 8,
    fence: 9,
    deletedAt: 6,
    cause: null,
    keepUntil: NOW + 86_400_000,
  });
  expect(await store.timeline("live", { since: 0, limit: 9 })).toEqual([
    { seq: 1, at: 5, sandboxId: "live", type: "created", detail: { a: 1 } },
  ]);
  expect(await store.installationId()).toBe("home");
  expect((await store.list({ limit: 99 })).holdings.map(({ sandboxId }) => sandboxId)).toEqual([
    ...released.map(({ phase }) => phase),
    "stopped",
    "deleting",
  ]);
  await dispose();
});

function openUpgraded(): { store: SqliteStore; dispose(): Promise<void> } {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  makeReleased(path);
  const store = new SqliteStore({ path, newId: () => "never", now: () => NOW });
  return {
    store,
    async dispose() {
      await store.close();
      rmSync(dir, { recursive: true });
    },
  };
}

function makeReleased(path: string): void {
  const db = new Database(path, { strict: true });
  db.run(migrations[0] ?? "");
  db.run("PRAGMA user_version = 1");
  db.run("INSERT INTO installation VALUES ('home', 1)");
  const sandbox = db.prepare(
    `INSERT INTO sandbox (id, name, provider, spec, labels, desired, delete_mode, generation, fence, created_at,
       launch_failures, failure, last_death, idempotency_key, due_at, version)
     VALUES (?1, 'n-' || ?1, 'local', '{"network":"none"}', '{"l":"1"}', ?2, 'force', 3, 4, 10, 1, 'f', NULL,
       'k-' || ?1, ?3, 7)`,
  );
  const instance = db.prepare(
    `INSERT INTO instance (instance_id, installation_id, sandbox_id, provider, generation, fence, phase, secret, limits,
       created_at, startup_deadline_at, admitted_at, stop_reason, stop_mode, attempts, next_attempt_at, last_error,
       evidence, due_at, version)
     VALUES ('i-' || ?1, 'home', ?1, 'local', 3, 4, ?2, 's', '{"state":"enforced"}', 10, 5000, ?3, NULL, 'graceful', 2,
       ?4, 'e', ?5, 10, 5)`,
  );
  for (const { phase, next, admitted } of released) {
    sandbox.run(phase, "active", null);
    instance.run(phase, phase, admitted, next, null);
  }
  sandbox.run("stopped", "stopped", null);
  instance.run("stopped", "gone", 50, null, '{"kind":"exited","at":7,"detail":"pid 1"}');
  sandbox.run("deleting", "deleted", 10);
  db.run("INSERT INTO tombstone VALUES ('buried', 'old', 8, 9, 6)");
  db.run(
    `INSERT INTO timeline (sandbox_id, at, type, cause, detail) VALUES ('live', 5, 'created', NULL, '{"a":1}')`,
  );
  for (const statement of [sandbox, instance]) statement.finalize();
  db.close();
}

function upgradedSandbox(id: string): Ledger["sandbox"] {
  return {
    id,
    name: `n-${id}`,
    tenantId: "default",
    provider: "local",
    spec: { network: "none" },
    policy: {
      persistent: true,
      lifetimeSeconds: 1800,
      onIdle: "stop",
      filesystem: "persistent",
      maxLifetimeSeconds: null,
      turnTimeoutSeconds: 3600,
      persistAcrossRestarts: true,
    },
    labels: { l: "1" },
    desired: "active",
    deleteMode: "force",
    deleteReason: null,
    generation: 3,
    fence: 4,
    hasDisk: true,
    createdAt: 10,
    lastUsedAt: NOW,
    turns: [],
    claim: null,
    claimFence: 0,
    launchFailures: 1,
    failure: "f",
    lastDeath: null,
    diskHistory: null,
    diskRetryAt: null,
    diskAttempts: 0,
    ports: [],
    restoresFrom: null,
  };
}
