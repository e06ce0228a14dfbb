import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeConformance } from "@holdfast/testkit";
import { SqliteStore } from "./sqlite-store.ts";

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
