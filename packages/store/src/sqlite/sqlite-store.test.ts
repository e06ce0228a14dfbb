import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeConformance } from "@holdfast/testkit";
import { SqliteStore } from "./sqlite-store.ts";

storeConformance("SQLite", async (now) => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const store = new SqliteStore({ path: join(dir, "test.db"), newId: () => "installation", now });
  return {
    store,
    dispose() {
      store.close();
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
  first.close();
  const second = open("second");
  expect(await second.installationId()).toBe("first");
  second.close();

  const raw = new Database(path);
  raw.run("PRAGMA user_version = 999");
  raw.close();
  expect(() => open("third")).toThrow(/schema 999/);
  rmSync(dir, { recursive: true });
});

test("no other user can read it, also where it was once made with another mode", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const modes = () => readdirSync(dir).map((file) => statSync(join(dir, file)).mode & 0o777);
  for (const round of ["new", "again"]) {
    const store = new SqliteStore({ path, newId: () => round, now: () => 1 });
    await store.installationId();
    expect(modes()).toEqual([0o600, 0o600, 0o600]);
    store.close();
    chmodSync(path, 0o644);
  }
  rmSync(dir, { recursive: true });
});

test("a database that somebody holds is unavailable, with nothing changed, and works again afterwards", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-store-"));
  const path = join(dir, "test.db");
  const store = new SqliteStore({ path, newId: () => "installation", now: () => 1 });
  const other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  await expect(store.installationId()).rejects.toMatchObject({
    code: "unavailable",
    retryable: true,
    details: { sqlite: "SQLITE_BUSY" },
  });
  other.run("ROLLBACK");
  expect(await store.installationId()).toBe("installation");
  other.close();
  store.close();
  rmSync(dir, { recursive: true });
});
