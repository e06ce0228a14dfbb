import type { Database, Statement } from "bun:sqlite";
import { HoldfastError } from "@holdfast/protocol";
import type { Columns, Dialect, Driver, Tx, Value } from "../driver.ts";
import { explained } from "./failures.ts";

/** We alone write, one transaction after the other, so nothing has to be locked. */
export const sqlite: Dialect = {
  clock: "NULL",
  forUpdate: "",
  skipLocked: "",
  listed: (parameter) => `(SELECT value AS id FROM json_each(${parameter}))`,
};

/**
 * There is one connection, and whoever awaits something in the middle of a transaction lets others run. So every piece
 * of work waits for the one before it, reads too: nobody sees half of a transaction. It waits for nothing else, so that
 * a simulation on it is deterministic.
 */
export class SqliteDriver implements Driver {
  readonly isShared: boolean;
  readonly #db: Database;
  readonly #now: () => number;
  readonly #tx: Tx;
  readonly #statements = new Map<string, Statement<Columns, Value[]>>();
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  #writes = 0;

  /** `isShared`: several servers of one process use it, as if it were elsewhere. */
  constructor({ db, now, isShared }: { db: Database; now: () => number; isShared: boolean }) {
    this.isShared = isShared;
    this.#db = db;
    this.#now = now;
    this.#tx = {
      dialect: sqlite,
      now: async () => now(),
      all: async (sql, ...values) => this.#statement(sql).all(...values),
      run: async (sql, ...values) => this.#statement(sql).run(...values).changes,
    };
  }

  /** Also of a file that is shared: whoever shares it does so in this process, and through here. */
  get writes(): number {
    return this.#writes;
  }

  get time(): number {
    return this.#now();
  }

  read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#afterLast(() => work(this.#tx));
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    this.#writes += 1;
    return this.#afterLast(() => this.#transaction(work));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#last;
    for (const statement of this.#statements.values()) statement.finalize();
    this.#db.close();
  }

  #afterLast<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closed());
    const result = this.#last.then(work).catch((error: unknown) => {
      throw explained(error);
    });
    // Its caller is told of a failure; the next in line only waits for the end.
    this.#last = result.then(ignore, ignore);
    return result;
  }

  /** Takes the write lock first, so that what is read inside is still true at the commit. */
  async #transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    this.#statement("BEGIN IMMEDIATE").run();
    try {
      const result = await work(this.#tx);
      this.#statement("COMMIT").run();
      return result;
    } catch (error) {
      // A full disk may have undone it already.
      if (this.#db.inTransaction) this.#statement("ROLLBACK").run();
      throw error;
    }
  }

  #statement(sql: string): Statement<Columns, Value[]> {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare<Columns, Value[]>(sql.replace(/\$(\d+)/g, "?$1"));
    this.#statements.set(sql, statement);
    return statement;
  }
}

function ignore(): void {}

function closed(): HoldfastError {
  return new HoldfastError("unavailable", "the database is closed: this server is ending", {
    hint: "ask again when the server has started anew",
  });
}
