/** The lifecycle over a provider and keepers that answer at once: what is left is ours and the database's. */
import { Database } from "bun:sqlite";
import {
  defaultMinFreeDisk,
  type KeeperControl,
  type Provider,
  plainCapabilities,
  type Store,
} from "@holdfast/core";
import { systemClock } from "../packages/server/src/clock.ts";
import { newId } from "../packages/server/src/ids.ts";
import { Lifecycle } from "../packages/server/src/lifecycle/lifecycle.ts";
import { silentLog } from "../packages/server/src/log.ts";

export function instantLifecycle(store: Store): Lifecycle<KeeperControl> {
  return new Lifecycle({
    store,
    providers: new Map([["instant", instantProvider()]]),
    door: ({ address }) => instantKeeper(address.path),
    clock: systemClock,
    random: Math.random,
    newId,
    log: silentLog,
    owner: "bench",
    config: {
      defaultProvider: "instant",
      slots: null,
      tenantQuota: null,
      minFreeDisk: defaultMinFreeDisk,
      orphanLimitSeconds: 86_400,
      spares: 0,
    },
  });
}

/** What the reconciler asks of the store when nothing is due. */
export async function tick(store: Store): Promise<void> {
  await store.hosts();
  await store.now();
  const taken = await store.takeDue({ owner: "bench", ttlMs: 60_000, limit: 64, except: [] });
  if (taken.length > 0) throw new Error("something was due");
  await store.takeJobs({ owner: "bench", ttlMs: 600_000 });
  await store.nextDueAt({ except: [] });
}

/** The tick reads no other table: a live lease is one row here, due when it could be idle at the earliest. */
export function leaseRows(n: number): string[] {
  const later = Date.now() + 86_400_000;
  return [
    "DELETE FROM work",
    `WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < ${n})
     INSERT INTO work (sandbox_id, provider, due_at, version, ticket_no)
     SELECT 'sbx' || i, 'instant', ${later} + i, 1, 1 FROM series`,
  ];
}

export function inSqlite(path: string, statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) db.run(statement);
  db.close();
}

function instantProvider(): Provider {
  const absent = { state: "absent", proof: "exited", detail: "" } as const;
  const disk = { sizeBytes: 1e12, freeBytes: 1e12, inodes: 0, freeInodes: 0 };
  return {
    kind: "instant",
    capabilities: plainCapabilities,
    probe: async () => [],
    launch: async () => {},
    // The keeper's address says which instance it is of.
    observe: async ({ instanceId }) => ({
      state: "running",
      keeper: { kind: "unix", path: instanceId },
      limits: { state: "none" },
      detail: "",
    }),
    stop: async () => absent,
    removeDisk: async () => absent,
    discover: async () => [],
    capacity: async () => ({ slots: null, memoryBytes: null, disk }),
  };
}

function instantKeeper(instanceId: string): KeeperControl {
  return {
    info: async () => ({ instanceId }),
    admit: async () => {},
    watch: async () => ({ close() {} }),
    quiesce: async () => ({ state: "quiesced" }),
    resume: async () => {},
    touch: async () => {},
    activity: async () => ({ idleForMs: 0, heldAwakeBy: [] }),
    claimFence: async () => {},
  };
}
