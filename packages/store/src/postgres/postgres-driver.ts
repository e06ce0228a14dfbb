import { HoldfastError } from "@holdfast/protocol";
import { type ReservedSQL, SQL } from "bun";
import type { Columns, Dialect, Driver, Tx, Value } from "../driver.ts";
import { explained, noAnswer, unknownCommit } from "./failures.ts";

/** Enough for a server's parallel work; a transaction is a few statements, so they are rarely all in use. */
const CONNECTIONS = 8;

export const postgres: Dialect = {
  clock: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
  forUpdate: "FOR UPDATE",
  skipLocked: "FOR UPDATE SKIP LOCKED",
  listed: (parameter) => `(SELECT json_array_elements_text(CAST(CAST(${parameter} AS TEXT) AS JSON)) AS id)`,
};

/** Said for every connection, because an installation's defaults may be others. */
const settings = {
  application_name: "holdfast",
  // A lease must be on the disk before its instance exists.
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
  // A server that was stopped in the middle of a transaction must not hold up the others for longer than this.
  idle_in_transaction_session_timeout: "10s",
  // A transaction takes milliseconds: who waits for so long waits for one that hangs, and may as well ask again.
  lock_timeout: "5s",
  statement_timeout: "30s",
};

/** More than any of the database's own limits: who still has no answer then has no connection any more. */
const DEADLINE_MS = 45_000;

export class PostgresDriver implements Driver {
  readonly isShared = true;
  readonly #sql: SQL;
  readonly #deadlineMs: number;
  #closed: Promise<void> | undefined;

  constructor(url: string, { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {}) {
    this.#sql = new SQL(url, { max: CONNECTIONS, connectionTimeout: 10, connection: settings });
    this.#deadlineMs = deadlineMs;
  }

  read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#inTime(this.#read(work));
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#inTime(this.#write(work));
  }

  close(): Promise<void> {
    // The grace is for what is under way; connections are cut after it.
    this.#closed ??= this.#sql.close({ timeout: 5 });
    return this.#closed;
  }

  /** A network that swallows everything would keep us waiting for a quarter of an hour. */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(noAnswer(this.#deadlineMs)), this.#deadlineMs);
    try {
      return await Promise.race([work, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    try {
      return await work(statementsOn(this.#sql));
    } catch (error) {
      throw explained(error);
    }
  }

  async #write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const connection = await this.#reserve();
    try {
      return await inTransaction(connection, work);
    } finally {
      connection.release();
    }
  }

  async #reserve(): Promise<ReservedSQL> {
    try {
      return await this.#sql.reserve();
    } catch (error) {
      throw explained(error);
    }
  }
}

async function inTransaction<T>(connection: ReservedSQL, work: (tx: Tx) => Promise<T>): Promise<T> {
  let result: T;
  try {
    await connection.unsafe("BEGIN");
    result = await work(statementsOn(connection));
  } catch (error) {
    // If this fails, too, the connection is lost, and the transaction with it: the first error says why.
    await connection.unsafe("ROLLBACK").catch(() => undefined);
    throw explained(error);
  }
  try {
    await connection.unsafe("COMMIT");
    return result;
  } catch (error) {
    throw unknownCommit(error);
  }
}

function statementsOn(sql: SQL | ReservedSQL): Tx {
  const ask = (text: string, values: Value[]) => sql.unsafe<Columns[]>(text, values.map(whole));
  return {
    dialect: postgres,
    now: async () => Number((await ask(`SELECT ${postgres.clock} AS now`, []))[0]?.now),
    all: async (text, ...values) => [...(await ask(text, values))],
    run: async (text, ...values) => (await ask(text, values)).count,
  };
}

/** PostgreSQL would round it without a word, and SQLite refuses it. */
function whole(value: Value): Value {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  throw new HoldfastError("internal", `${value} is not a whole number, and a row takes no other`);
}
