import { Database } from "bun:sqlite";
import type { Store } from "@holdfast/core";
import { SqlStore } from "../../packages/store/src/sql-store.ts";
import { openDatabase } from "../../packages/store/src/sqlite/open.ts";
import { SqliteDriver } from "../../packages/store/src/sqlite/sqlite-driver.ts";
import { START_MS } from "../start-time.ts";

/** The real store in memory. It can be copied at any moment, and go back to a copy. */
export class SimDatabase {
  readonly #options: { readonly now: () => number; readonly newId: () => string; readonly isShared: boolean };
  #db: Database;
  #store: Store;

  constructor(options: { now: () => number; newId: () => string; isShared: boolean }) {
    this.#options = options;
    this.#db = fresh();
    this.#store = this.#storeOn(this.#db);
  }

  get store(): Store {
    return this.#store;
  }

  backup(): Uint8Array {
    return this.#db.serialize();
  }

  restore(bytes: Uint8Array): void {
    this.#db = Database.deserialize(bytes, { strict: true });
    this.#store = this.#storeOn(this.#db);
  }

  /** As the only server of a data dir does when it opens it: whoever held a ticket is dead. */
  voidTickets(): void {
    for (const table of ["work", "job"])
      this.#db.run(
        `UPDATE ${table} SET ticket_owner = NULL, ticket_until = NULL WHERE ticket_until IS NOT NULL`,
      );
  }

  /** For what no code of ours would do. */
  run(sql: string): void {
    this.#db.run(sql);
  }

  #storeOn(db: Database): Store {
    const { now, newId, isShared } = this.#options;
    return new SqlStore({ driver: new SqliteDriver({ db, now, isShared }), newId });
  }
}

let template: Uint8Array | undefined;

/** The schema is made once; each run begins with a copy. */
function fresh(): Database {
  template ??= openDatabase(":memory:", START_MS).serialize();
  return Database.deserialize(template, { strict: true });
}
