import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insertReserved, must, newLease, rules, sandboxRow, storeConformance } from "@holdfast/testkit";
import { SqlStore } from "../sql-store.ts";
import { takeDueQuery } from "../tickets.ts";
import { openDatabase } from "./open.ts";
import { SqliteDriver, sqlite } from "./sqlite-driver.ts";
import { SqliteStore } from "./sqlite-store.ts";

const minute = { owner: "me", ttlMs: 60_000 };
const created = { entry: { type: "created" } };

storeConformance("SQLite", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const store = new SqliteStore({ path, newId: () => "installation", now: Date.now });
  const other = new Database(path);
  return {
    stores: [store],
    async raw(sql) {
      other.run(sql);
    },
    async rawUnchecked(sql) {
      other.run("PRAGMA ignore_check_constraints = true");
      other.run(sql);
    },
    async dispose() {
      other.close();
      await store.close();
      rmSync(dir, { recursive: true });
    },
  };
});

test("what was committed is there after the file is opened again; a newer schema is refused", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const open = (id: string) => new SqliteStore({ path, newId: () => id, now: () => 1 });
  const first = open("first");
  expect(await first.installationId()).toBe("first");
  await first.close();
  const second = open("second");
  expect(await second.installationId()).toBe("first");
  await second.close();

  const raw = new Database(path);
  raw.run("PRAGMA user_version = 999");
  raw.close();
  expect(() => open("third")).toThrow(/schema 999/);
  rmSync(dir, { recursive: true });
});

test("what is found again without a look at the database is what every write before left", async () => {
  let now = 1;
  const store = new SqliteStore({ path: ":memory:", newId: () => "installation", now: () => now });
  const first = await store.insertSandbox(sandboxRow({ id: "sbx1", name: "one" }), created);
  for (let use = 2; use < 10; use++) {
    now = use;
    const before = await must(store.find("one"));
    expect(await must(store.find("one"))).toEqual(before);
    expect(before.readAt).toBe(use);
    // One look is begun before the write, and one after it; neither waits for it.
    const early = store.find("one");
    const saving = store.save(before, { sandbox: { lastUsedAt: use } });
    const late = store.find("one");
    expect((await must(early)).sandbox.lastUsedAt).toBeOneOf([use - 1, use, first.sandbox.lastUsedAt]);
    expect((await must(late)).sandbox.lastUsedAt).toBe(use);
    expect((await must(saving)).version).toBe((await must(store.find("sbx1"))).version);
  }
  expect(await store.find("two")).toBeUndefined();
  await store.insertSandbox(sandboxRow({ id: "sbx2", name: "two" }), created);
  expect((await must(store.find("two"))).sandboxId).toBe("sbx2");
  await store.close();
});

test("no other user can read it, also where it was once made with another mode", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const modes = () => readdirSync(dir).map((file) => statSync(join(dir, file)).mode & 0o777);
  for (const round of ["new", "again"]) {
    const store = new SqliteStore({ path, newId: () => round, now: () => 1 });
    await store.installationId();
    expect(modes()).toEqual([0o600, 0o600, 0o600]);
    await store.close();
    chmodSync(path, 0o644);
  }
  rmSync(dir, { recursive: true });
});

test("tickets of an earlier process are void, and the next one's number is higher", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const open = () => new SqliteStore({ path: join(dir, "test.db"), newId: () => "id", now: () => 1 });
  const first = open();
  await insertReserved(first);
  await first.addJob("sweep", 1);
  const lost = await must(first.ticket("s1", minute));
  await first.takeJobs(minute);
  await first.close();

  const second = open();
  expect(await second.renew(lost)).toBeUndefined();
  expect(await second.ticket("s1", minute)).toMatchObject({ no: lost.no + 1 });
  expect(await second.takeJobs(minute)).toMatchObject([{ ticket: { no: 2 } }]);
  await second.close();
  rmSync(dir, { recursive: true });
});

test("several servers of one process: their tickets are kept, and it counts as shared", async () => {
  const store = new SqliteStore({ path: ":memory:", newId: () => "id", now: () => 1, keepTickets: true });
  expect(store.isShared).toBe(true);
  await store.close();
  await store.close();
  await expect(store.now()).rejects.toMatchObject({ code: "unavailable" });
});

test("nobody sees half of a transaction, and a failed one holds nobody up", async () => {
  const driver = inMemory();
  const half = driver.write(async (tx) => {
    await tx.run("INSERT INTO host (provider, failures) VALUES ('a', 1)");
    await Promise.resolve();
    await tx.run("INSERT INTO host (provider, failures) VALUES ('a', 2)");
  });
  const seen = driver.read((tx) => tx.all("SELECT * FROM host"));
  await expect(half).rejects.toThrow(/UNIQUE/);
  expect(await seen).toEqual([]);
  await driver.close();
});

test("scenario 53: a database that somebody holds is unavailable, with nothing changed, and works again", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const store = new SqliteStore({ path, newId: () => "installation", now: () => 1 });
  const other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  await expect(store.insertSandbox(sandboxRow(), created)).rejects.toMatchObject({
    code: "unavailable",
    retryable: true,
    details: { sqlite: "SQLITE_BUSY" },
  });
  other.run("ROLLBACK");
  expect(await store.find("s1")).toBeUndefined();
  await store.insertSandbox(sandboxRow(), created);
  other.close();
  await store.close();
  rmSync(dir, { recursive: true });
});

test("scenario 53: a full disk is unavailable, nothing of the intent is written, and room makes it work", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const db = openDatabase(join(dir, "test.db"), 1);
  const store = new SqlStore({
    driver: new SqliteDriver({ db, now: () => 1, isShared: false }),
    newId: () => "id",
  });
  const { page_count } = db.query("PRAGMA page_count").get() as { page_count: number };
  db.run(`PRAGMA max_page_count = ${page_count + 1}`);
  const big = { ...created, entry: { type: "created", detail: { filler: "x".repeat(50_000) } } };
  const launch = { lease: newLease(), rules: rules() };
  await expect(store.insertSandbox(sandboxRow(), { ...big, ...launch })).rejects.toMatchObject({
    code: "unavailable",
    hint: expect.stringMatching(/make room/),
    details: { sqlite: "SQLITE_FULL" },
  });
  expect(await store.ledger("s1")).toBeUndefined();
  expect(await store.leases({ limit: 9 })).toEqual([]);
  db.run("PRAGMA max_page_count = 100000");
  expect((await store.insertSandbox(sandboxRow(), { ...big, ...launch })).lease?.phase).toBe("reserved");
  await store.close();
  rmSync(dir, { recursive: true });
});

test("the due query uses its index", async () => {
  const driver = inMemory();
  const sql = `EXPLAIN QUERY PLAN ${takeDueQuery(sqlite)}`;
  const plan = (await driver.read((tx) => tx.all(sql, 1, "me", 2, "[]", 10))).map(({ detail }) =>
    String(detail),
  );
  expect(plan.join("\n")).toMatch(/SEARCH work USING (COVERING )?INDEX work_due/);
  expect(plan.join("\n")).not.toMatch(/SCAN work|TEMP B-TREE/);
  await driver.close();
});

test("an audit looks at every row, page by page, and goes on where the last one ended", async () => {
  const db = openDatabase(":memory:", 1);
  const driver = new SqliteDriver({ db, now: () => 1, isShared: false });
  const store = new SqlStore({ driver, newId: () => "id" });
  // Ids with nothing but a tombstone, and two sandboxes behind them.
  db.run(`INSERT INTO work (sandbox_id, provider, version, ticket_no)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2200)
    SELECT printf('w%05d', i), '', 1, 0 FROM n`);
  db.run("INSERT INTO tombstone SELECT sandbox_id, sandbox_id, 1, 1, 1, NULL, 9 FROM work");
  for (const id of ["x", "y"]) await insertReserved(store, id);
  db.run("UPDATE work SET due_at = 123456 WHERE sandbox_id = 'x'");
  db.run("UPDATE work SET due_at = NULL WHERE sandbox_id = 'y'");
  const keeping = { keepGoneMs: 0, keepEntries: 9 };
  expect(await store.audit(keeping)).toEqual({ repaired: ["y"], forgotten: 0 });
  expect(await store.audit(keeping)).toEqual({ repaired: ["x"], forgotten: 0 });
  expect(await store.audit(keeping)).toEqual({ repaired: [], forgotten: 0 });
  await store.close();
});

function inMemory(): SqliteDriver {
  return new SqliteDriver({ db: openDatabase(":memory:", 1), now: () => 1, isShared: false });
}
