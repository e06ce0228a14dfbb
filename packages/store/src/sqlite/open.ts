import { Database } from "bun:sqlite";
import { chmodSync, existsSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import { migrations } from "./migrations.ts";

/** Opens the database and brings its schema up to date; refuses one that a newer version has already moved on. */
export function openDatabase(path: string, now: number): Database {
  const db = openPrivately(path);
  db.run("PRAGMA synchronous = FULL");
  // We alone write. A backup or a curious person may hold it for a moment, and while we wait nobody is served.
  db.run("PRAGMA busy_timeout = 1000");
  try {
    migrate(db, now);
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

/** Secrets are in it, and what users put into a spec's environment: from the first moment it is for its owner alone. */
function openPrivately(path: string): Database {
  const before = process.umask(0o077);
  try {
    const db = new Database(path, { create: true, strict: true });
    // A lease must be on the disk before its instance exists, so a commit is an fsync.
    db.run("PRAGMA journal_mode = WAL");
    for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
    return db;
  } finally {
    process.umask(before);
  }
}

function migrate(db: Database, now: number): void {
  db.transaction(() => {
    const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
    const from = row?.user_version ?? 0;
    if (from > migrations.length) throw tooNew(from);
    for (const step of migrations.slice(from)) db.run(step.replaceAll("{now}", String(now)));
    db.run(`PRAGMA user_version = ${migrations.length}`);
  }).immediate();
}

function tooNew(found: number): HoldfastError {
  return new HoldfastError(
    "unavailable",
    `the database has schema ${found}, and this version of Holdfast knows only up to ${migrations.length}`,
    {
      hint: "start the newer version of Holdfast again, or give this one another --data-dir",
      retryable: false,
    },
  );
}
