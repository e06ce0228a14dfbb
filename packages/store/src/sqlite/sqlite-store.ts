import type { Database } from "bun:sqlite";
import { SqlStore } from "../sql-store.ts";
import { openDatabase } from "./open.ts";
import { SqliteDriver } from "./sqlite-driver.ts";

export interface SqliteStoreOptions {
  readonly path: string;
  readonly newId: () => string;
  readonly now: () => number;
  /** Several servers of this process share it. Otherwise we are alone, and tickets of an earlier process are void. */
  readonly keepTickets?: boolean;
}

/** The store on one SQLite file. One process writes; every call is on the disk when it answers. */
export class SqliteStore extends SqlStore {
  constructor({ path, newId, now, keepTickets = false }: SqliteStoreOptions) {
    const db = openDatabase(path, now());
    if (!keepTickets) voidTickets(db);
    super({ driver: new SqliteDriver({ db, now, isShared: keepTickets }), newId });
  }
}

/** No server that had one can still be at work: the data dir's lock says that we are alone. */
function voidTickets(db: Database): void {
  for (const table of ["work", "job"]) {
    db.run(`UPDATE ${table} SET ticket_owner = NULL, ticket_until = NULL WHERE ticket_until IS NOT NULL`);
  }
}
