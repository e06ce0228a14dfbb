import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { missingPostgres, type Postgres, startPostgres, storeConformance } from "@holdfast/testkit";
import { SQL } from "bun";
import type { SqlStore } from "../sql-store.ts";
import { openDatabase } from "../sqlite/open.ts";
import { takeDueQuery, ticket } from "../tickets.ts";
import { postgres as dialect, PostgresDriver } from "./postgres-driver.ts";
import { PostgresStore } from "./postgres-store.ts";

const missing = missingPostgres();
if (missing === undefined) describe("PostgreSQL", suite);
// In CI nobody would see that something was not tested: there it fails.
else if (process.env.CI === "true") test("PostgreSQL", () => expect(missing).toBeUndefined());
else test.skip(`PostgreSQL (${missing})`, () => {});

function suite(): void {
  let cluster: Postgres;
  let url: string;
  let raw: SQL;
  let servers: [SqlStore, SqlStore, SqlStore];

  beforeAll(async () => {
    cluster = await startPostgres();
    url = await cluster.newDatabase();
    raw = new SQL(url, { max: 2 });
    // At once, as servers start that one command brings up: the schema is made once.
    servers = await Promise.all([open(url), open(url), open(url)]);
  });
  afterAll(async () => {
    try {
      for (const server of servers) await server.close();
      await raw.close();
    } finally {
      await cluster.stop();
    }
  });

  /** A new database for each test would take most of the time. */
  async function empty(): Promise<void> {
    await raw.unsafe("TRUNCATE sandbox, instance, work, job, host, tombstone, timeline, snapshot");
    await raw.unsafe("UPDATE installation SET home = NULL");
  }

  storeConformance("three servers on one PostgreSQL", async () => {
    await empty();
    return {
      stores: servers,
      raw: async (sql) => void (await raw.unsafe(sql)),
      async rawUnchecked(sql) {
        const check =
          "SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = 'instance_phase_check'";
        const [{ text }] = await raw.unsafe(check);
        await raw.unsafe("ALTER TABLE instance DROP CONSTRAINT instance_phase_check");
        await raw.unsafe(sql);
        await raw.unsafe(`ALTER TABLE instance ADD CONSTRAINT instance_phase_check ${text} NOT VALID`);
      },
      dispose: async () => {},
    };
  });

  test("the time is the database's", async () => {
    const [{ now }] = await raw.unsafe("SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now");
    expect(Math.abs((await servers[0].now()) - Number(now))).toBeLessThan(1_000);
    expect(servers[0].isShared).toBe(true);
  });

  test("a database from a newer version is refused", async () => {
    await raw.unsafe("UPDATE holdfast_schema SET version = version + 900");
    await expect(open(url)).rejects.toMatchObject({
      code: "unavailable",
      retryable: false,
      message: expect.stringMatching(/schema 90\d/),
    });
    await raw.unsafe("UPDATE holdfast_schema SET version = version - 900");
    await (await open(url)).close();
  });

  test("scenario 53: a row that somebody holds locked is unavailable, with nothing changed", async () => {
    await empty();
    await raw.unsafe(
      "INSERT INTO work (sandbox_id, provider, due_at, version, ticket_no) VALUES ('s1', '', 1, 1, 0)",
    );
    const driver = new PostgresDriver(url);
    const impatient = () =>
      driver.write(async (tx) => {
        await tx.run("SET LOCAL lock_timeout = 50");
        return ticket(tx, "s1", { owner: "me", ttlMs: 1 });
      });
    await raw.begin(async (held) => {
      await held.unsafe("SELECT * FROM work FOR UPDATE");
      await expect(impatient()).rejects.toMatchObject({
        code: "unavailable",
        retryable: true,
        details: { postgres: "55P03" },
      });
      // Whoever takes what is due does not wait.
      expect(await servers[0].takeDue({ owner: "me", ttlMs: 1, limit: 1, except: [] })).toEqual([]);
    });
    expect(await impatient()).toMatchObject({ no: 1 });
    await driver.close();
  });

  test("a transaction that fails leaves none open", async () => {
    const driver = new PostgresDriver(url);
    const failing = Array.from({ length: 20 }, () =>
      driver.write((tx) => tx.run("INSERT INTO job (name) VALUES ('j')")),
    );
    for (const { status } of await Promise.allSettled(failing)) expect(status).toBe("rejected");
    const open = "SELECT count(*) AS n FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
    expect([...(await raw.unsafe(open))]).toEqual([{ n: "0" }]);
    await driver.close();
  });

  test("a connection that is lost in a transaction undoes it, and the next call has a new one", async () => {
    await empty();
    const driver = new PostgresDriver(url);
    const lost = driver.write(async (tx) => {
      await tx.run("INSERT INTO job (name, due_at, memory, ticket_no) VALUES ('j', 1, '{}', 0)");
      await cutOff(raw, tx);
      await tx.run("UPDATE job SET due_at = 2");
    });
    await expect(lost).rejects.toMatchObject({ code: "unavailable", details: { postgres: "57P01" } });
    expect(await driver.read((tx) => tx.all("SELECT * FROM job"))).toEqual([]);
    await driver.close();
  });

  test("a connection that is lost at the commit: it is not known whether it was done, and that is said", async () => {
    const driver = new PostgresDriver(url);
    const lost = driver.write((tx) => cutOff(raw, tx));
    await expect(lost).rejects.toMatchObject({ code: "unavailable", details: { committed: "unknown" } });
    await driver.close();
  });

  test("a database that does not answer is unavailable in time, and works again when it does", async () => {
    const driver = new PostgresDriver(url, { deadlineMs: 300 });
    let pid = 0;
    const stuck = driver.write(async (tx) => {
      pid = Number((await tx.all("SELECT pg_backend_pid() AS pid"))[0]?.pid);
      process.kill(pid, "SIGSTOP");
      await tx.all("SELECT 1");
    });
    await expect(stuck).rejects.toMatchObject({ code: "unavailable", details: { committed: "unknown" } });
    process.kill(pid, "SIGCONT");
    expect(await driver.write((tx) => tx.all("SELECT 2 AS two"))).toEqual([{ two: 2 }]);
    await driver.close();
  });

  test("connections that nothing comes back from are given up, and others take their place", async () => {
    const driver = new PostgresDriver(url, { deadlineMs: 1_000 });
    const pids: number[] = [];
    const stuck = Array.from({ length: 8 }, () =>
      driver.write(async (tx) => {
        const pid = Number((await tx.all("SELECT pg_backend_pid() AS pid"))[0]?.pid);
        pids.push(pid);
        process.kill(pid, "SIGSTOP");
        await tx.all("SELECT 1");
      }),
    );
    try {
      const ended = await Promise.allSettled(stuck);
      expect(ended.map(({ status }) => status)).toEqual(Array(8).fill("rejected"));
      expect(await driver.write((tx) => tx.all("SELECT 2 AS two"))).toEqual([{ two: 2 }]);
      expect(await driver.read((tx) => tx.all("SELECT 3 AS three"))).toEqual([{ three: 3 }]);
    } finally {
      for (const pid of pids) process.kill(pid, "SIGCONT");
      await driver.close();
    }
  });

  test("text that PostgreSQL cannot hold finds nothing, and is kept as near as it can be", async () => {
    await empty();
    expect(await servers[0].find("a\0b")).toBeUndefined();
    await servers[0].saveHost("p", { lastError: "a\0b" });
    expect(await servers[0].hosts()).toMatchObject([{ lastError: "a\uFFFDb" }]);
  });

  test("both databases have the same tables", async () => {
    const rows: { table: string; column: string }[] = await raw.unsafe(`
      SELECT table_name AS table, column_name AS column FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name <> 'holdfast_schema' AND column_name <> 'the_only_one'`);
    const db = openDatabase(":memory:", 1);
    const same = db.query<{ table: string; column: string }, []>(`
      SELECT m.name AS "table", c.name AS "column" FROM sqlite_master m JOIN pragma_table_info(m.name) c
      WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`);
    const sorted = (list: { table: string; column: string }[]) =>
      list.map(({ table, column }) => `${table}.${column}`).sort();
    expect(sorted([...rows])).toEqual(sorted(same.all()));
    db.close();
  });

  test("the due query uses its index", async () => {
    await empty();
    await raw.unsafe(`INSERT INTO work (sandbox_id, provider, due_at, version, ticket_no)
      SELECT 's' || n, 'fake', CASE WHEN n % 2 = 0 THEN 1000000 + n END, 1, 0 FROM generate_series(1, 20000) n`);
    await raw.unsafe("ANALYZE work");
    const plan = await raw.unsafe(`EXPLAIN ${takeDueQuery(dialect)}`, [1_000_020, "me", 2_000_000, "[]", 10]);
    const text = JSON.stringify([...plan]);
    expect(text).toContain("using work_due on work");
    expect(text).not.toContain("Seq Scan on work");
  });

  test("a number that is not whole is a defect, and is not rounded", async () => {
    await expect(servers[0].addJob("half", 1.5)).rejects.toMatchObject({ code: "internal" });
  });

  test("a database that cannot be opened says what to look at", async () => {
    const { port } = new URL(url);
    for (const [wrong, retryable, hint] of [
      [url.replace(`:${port}/`, ":1/"), true, /runs and can be reached/],
      [url.replace(/test_\d+$/, "nothing"), false, /name of the database/],
      [url.replace(/:[0-9a-f]{32}@/, ":wrong@"), false, /the password/],
    ] as const) {
      const refused = { code: "unavailable", retryable, hint: expect.stringMatching(hint) };
      await expect(open(wrong)).rejects.toMatchObject(refused);
    }
  });

  test("a database that is not there is unavailable", async () => {
    const other = await startPostgres();
    const store = await open(await other.newDatabase());
    await other.stop();
    await expect(store.now()).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await expect(store.installationId()).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await store.close();
    await store.close();
  });
}

function open(url: string): Promise<PostgresStore> {
  return PostgresStore.open({ url, newId: () => crypto.randomUUID() });
}

async function cutOff(raw: SQL, tx: Parameters<Parameters<PostgresDriver["write"]>[0]>[0]): Promise<void> {
  const [row] = await tx.all("SELECT pg_backend_pid() AS pid");
  await raw.unsafe("SELECT pg_terminate_backend($1, 5000)", [row?.pid]);
}
