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
  readonly #url: string;
  readonly #deadlineMs: number;
  #sql: SQL;
  #closed: Promise<void> | undefined;

  constructor(url: string, { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {}) {
    this.#url = url;
    this.#sql = connectionsTo(url);
    this.#deadlineMs = deadlineMs;
  }

  read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#inTime((sql) => read(sql, work));
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#inTime((sql) => write(sql, work));
  }

  close(): Promise<void> {
    this.#closed ??= this.#sql.close({ timeout: CLOSE_SECONDS });
    return this.#closed;
  }

  /** A network that swallows everything would keep us waiting for a quarter of an hour. */
  async #inTime<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    const sql = this.#sql;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#giveUp(sql);
      late.reject(noAnswer(this.#deadlineMs));
    }, this.#deadlineMs);
    try {
      return await Promise.race([work(sql), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The others of its time may hang like this one, and each would hold its place: all of them are replaced. */
  #giveUp(sql: SQL): void {
    if (this.#sql !== sql || this.#closed !== undefined) return;
    this.#sql = connectionsTo(this.#url);
    // Whoever still works on one of them is told by that work itself.
    sql.close({ timeout: CLOSE_SECONDS }).catch(() => undefined);
  }
}

/** For what is under way; connections are cut after it. */
const CLOSE_SECONDS = 5;

function connectionsTo(url: string): SQL {
  return new SQL(url, { max: CONNECTIONS, connectionTimeout: 10, connection: settings });
}

async function read<T>(sql: SQL, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await work(statementsOn(sql));
  } catch (error) {
    throw explained(error);
  }
}

async function write<T>(sql: SQL, work: (tx: Tx) => Promise<T>): Promise<T> {
  const connection = await reserve(sql);
  try {
    return await inTransaction(connection, work);
  } finally {
    connection.release();
  }
}

async function reserve(sql: SQL): Promise<ReservedSQL> {
  try {
    return await sql.reserve();
  } catch (error) {
    throw explained(error);
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
  const ask = (text: string, values: Value[]) => sql.unsafe<Columns[]>(text, values.map(taken));
  return {
    dialect: postgres,
    now: async () => Number((await ask(`SELECT ${postgres.clock} AS now`, []))[0]?.now),
    all: async (text, ...values) => [...(await ask(text, values))],
    run: async (text, ...values) => (await ask(text, values)).count,
  };
}

/**
 * PostgreSQL would round a number without a word, and SQLite refuses it. And it has no NUL in its texts: what somebody
 * sent with one is found nowhere, and a message is told without it.
 */
function taken(value: Value): Value {
  if (typeof value === "string") return value.replaceAll("\0", "\uFFFD");
  if (value === null || Number.isSafeInteger(value)) return value;
  throw new HoldfastError("internal", `${value} is not a whole number, and a row takes no other`);
}
