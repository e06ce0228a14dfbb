// `bun bench/lifecycle.ts`: what the lifecycle itself costs, beside its floor. The provider answers at once.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  defaultMinFreeDisk,
  type KeeperControl,
  type Provider,
  plainCapabilities,
  type Store,
} from "@holdfast/core";
import { PostgresStore, SqliteStore } from "@holdfast/store";
import { SQL } from "bun";
import { Sandbox } from "holdfast";
import { TestServer } from "../e2e/harness.ts";
import { systemClock } from "../packages/server/src/clock.ts";
import { newId } from "../packages/server/src/ids.ts";
import { Lifecycle } from "../packages/server/src/lifecycle/lifecycle.ts";
import { silentLog } from "../packages/server/src/log.ts";
import { startPostgres } from "../packages/testkit/src/postgres.ts";
import { timed } from "./measure.ts";

const LEASES = 100_000;
const LIVES = 1_000;
const AT_A_TIME = 32;
const SANDBOXES = 300;

const say = (text: string) => process.stdout.write(`${text}\n`);
const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const postgres = await startPostgres({ fsync: "on" });
try {
  await measureSqlite();
  await measurePostgres();
  await measureAdoption();
} finally {
  await postgres.stop();
  rmSync(dir, { recursive: true, force: true });
}

async function measureSqlite(): Promise<void> {
  const path = join(dir, "holdfast.db");
  const store = new SqliteStore({ path, newId: () => "installation", now: Date.now });
  await measureStore("SQLite", store, async (sql) => {
    const db = new Database(path);
    for (const statement of sql) db.run(statement);
    db.close();
  });
  const floor = new Database(join(dir, "floor.db"));
  floor.run("PRAGMA journal_mode = WAL");
  floor.run("PRAGMA synchronous = FULL");
  floor.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
  const insert = floor.query("INSERT INTO t (n) VALUES (1)");
  say(`  floor: ${round(await each(2_000, 1, async () => void insert.run()))} bare durable inserts/s`);
  floor.close();
}

async function measurePostgres(): Promise<void> {
  const url = await postgres.newDatabase();
  const store = await PostgresStore.open({ url, newId: () => "installation" });
  const sql = new SQL(url);
  await measureStore("PostgreSQL", store, async (statements) => {
    for (const statement of statements) await sql.unsafe(statement);
    await sql.unsafe("ANALYZE");
  });
  await sql.unsafe("CREATE TABLE floor (n INTEGER)");
  const insert = () => sql.unsafe("INSERT INTO floor (n) VALUES (1)");
  say(
    `  floor: ${round(await each(2_000, AT_A_TIME, insert))} bare durable inserts/s, ${AT_A_TIME} at a time`,
  );
  await sql.close();
}

/** `fill` runs SQL on the same database. */
async function measureStore(
  name: string,
  store: Store,
  fill: (statements: string[]) => Promise<void>,
): Promise<void> {
  const lifecycle = newLifecycle(store);
  await lifecycle.start();
  const perSecond = await each(LIVES, AT_A_TIME, async (i) => {
    await lifecycle.sandboxes.wake(await lifecycle.sandboxes.create({ name: `life-${i}` }));
    await lifecycle.sandboxes.delete(`life-${i}`, { mode: "force", waitMs: 60_000 });
  });
  say(`${name}: ${round(perSecond)} leases/s from create to tombstone, ${AT_A_TIME} at a time`);
  await lifecycle.close();
  for (const n of [1_000, LEASES]) {
    await fill(manyRows(n));
    const tick = await each(2_000, 1, () => idleTick(store));
    say(`  an idle tick with ${n.toLocaleString("en")} live leases: ${(1_000_000 / tick).toFixed(0)} µs`);
  }
  await store.close();
}

/** What the reconciler asks of the store when nothing is due. */
async function idleTick(store: Store): Promise<void> {
  await store.hosts();
  await store.now();
  const taken = await store.takeDue({ owner: "bench", ttlMs: 60_000, limit: 64, except: [] });
  if (taken.length > 0) throw new Error("something was due");
  await store.takeJobs({ owner: "bench", ttlMs: 600_000 });
  await store.nextDueAt({ except: [] });
}

/** The tick reads no other table: a live lease is one row here, due when it could be idle at the earliest. */
function manyRows(n: number): string[] {
  const later = Date.now() + 86_400_000;
  return [
    "DELETE FROM work",
    `WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < ${n})
     INSERT INTO work (sandbox_id, provider, due_at, version, ticket_no)
     SELECT 'sbx' || i, 'instant', ${later} + i, 1, 1 FROM series`,
  ];
}

/** From the start of the process, after a kill, until every one of them has run a command. */
async function measureAdoption(): Promise<void> {
  const server = await TestServer.start();
  try {
    const names = Array.from({ length: SANDBOXES }, (_, i) => `adopt-${i}`);
    await each(SANDBOXES, 8, (i) => Sandbox.create({ name: names[i] ?? "", network: "none" }, server.at));
    await server.signal("SIGKILL");
    const ready = await timed(() => server.boot());
    const used = await timed(() =>
      each(SANDBOXES, 16, async (i) => {
        const sandbox = await Sandbox.get(names[i] ?? "", server.at);
        const { exitCode } = await sandbox.exec("true", { ifGeneration: 1 });
        if (exitCode !== 0) throw new Error(`${names[i]} did not work`);
      }),
    );
    say(
      `${SANDBOXES} local sandboxes after kill -9: ready in ${round(ready)} ms, all used after ${round(used)} ms more`,
    );
  } finally {
    await server.dispose();
  }
}

function newLifecycle(store: Store): Lifecycle<KeeperControl> {
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
    },
  });
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

/** How many of them per second. */
async function each(n: number, atATime: number, work: (i: number) => Promise<unknown>): Promise<number> {
  const numbers = Array.from({ length: n }, (_, i) => i).values();
  const worker = async () => {
    for (const i of numbers) await work(i);
  };
  const ms = await timed(() => Promise.all(Array.from({ length: atATime }, worker)));
  return (n * 1000) / ms;
}

function round(n: number): string {
  return Math.round(n).toLocaleString("en");
}
