import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@holdfast/core";
import { PostgresStore, SqliteStore } from "@holdfast/store";
import { SQL } from "bun";
import { startPostgres } from "../../packages/testkit/src/postgres.ts";
import type { Bench, Case } from "../bench.ts";
import { instantLifecycle, leaseRows, tick } from "../instant-lifecycle.ts";
import { takeTurns, timedEach } from "../measure.ts";

const LIVES = 1_000;
const AT_A_TIME = 32;

/** Leases from create to tombstone, on both databases, which wait for the disk. */
export const lifecycle: Case = {
  name: "lifecycle",
  about: "What a lease costs, with a provider that answers at once",
  onlyIfNamed: true,
  async run(bench) {
    const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    await using parts = new AsyncDisposableStack();
    parts.defer(() => rmSync(dir, { recursive: true, force: true }));
    const sqlite = new SqliteStore({
      path: join(dir, "holdfast.db"),
      newId: () => "installation",
      now: Date.now,
    });
    await lives(bench, "SQLite", sqlite, sqliteFloor(dir));
    await sqlite.close();

    const postgres = await startPostgres({ fsync: "on" });
    parts.defer(() => postgres.stop());
    const url = await postgres.newDatabase();
    const store = await PostgresStore.open({ url, newId: () => "installation" });
    const sql = new SQL(url);
    await sql.unsafe("CREATE TABLE floor (n INTEGER)");
    const insert = () => sql.unsafe("INSERT INTO floor (n) VALUES (1)");
    await lives(bench, "PostgreSQL", store, (2_000 * 1000) / (await timedEach(2_000, AT_A_TIME, insert)));
    for (const statement of leaseRows(100_000)) await sql.unsafe(statement);
    await sql.unsafe("ANALYZE");
    const { summaries } = await takeTurns([{ role: "ours", name: "ours", run: () => tick(store) }], {
      rounds: 500,
      signal: bench.signal,
    });
    if (summaries[0])
      bench.line("an idle tick with 100,000 leases, PostgreSQL", "ms", [
        { role: "ours", name: "ours", summary: summaries[0] },
      ]);
    await sql.close();
    await store.close();
  },
};

async function lives(bench: Bench, name: string, store: Store, floor: number): Promise<void> {
  bench.say(`  ${LIVES} lives on ${name} …`);
  const lifecycle = instantLifecycle(store);
  await lifecycle.start();
  const ms = await timedEach(LIVES, AT_A_TIME, async (i) => {
    await lifecycle.sandboxes.wake(await lifecycle.sandboxes.create({ name: `life-${i}` }));
    await lifecycle.sandboxes.delete(`life-${i}`, { mode: "force", waitMs: 60_000 });
  });
  await lifecycle.close();
  bench.line(`leases from create to tombstone, ${AT_A_TIME} at a time, ${name}`, "/s", [
    { role: "ours", name: "ours", value: (LIVES * 1000) / ms },
    { role: "floor", name: "bare durable inserts", value: floor },
  ]);
}

function sqliteFloor(dir: string): number {
  const db = new Database(join(dir, "floor.db"));
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
  const insert = db.query("INSERT INTO t (n) VALUES (1)");
  const before = performance.now();
  for (let i = 0; i < 2_000; i++) insert.run();
  const perSecond = (2_000 * 1000) / (performance.now() - before);
  db.close();
  return perSecond;
}
