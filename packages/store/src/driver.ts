/** What a statement is given. Times, counts and flags are whole numbers; structures are JSON text. */
export type Value = string | number | null;

/** A row as the database gives it. PostgreSQL gives big integers as text, so that who reads one says `Number`. */
export type Columns = Readonly<Record<string, Value>>;

/** Where the two databases' SQL differs. Parameters are written `$1` for both. */
export interface Dialect {
  /** The database's own time in ms as an expression; `NULL` where the time is injected. */
  readonly clock: string;
  /** Ends a SELECT whose rows are to stay as they are until the transaction ends; empty where nobody else can write. */
  readonly forUpdate: string;
  readonly skipLocked: string;
  /** `id IN ${listed("$1")}`, the parameter being a JSON array of strings. */
  listed(parameter: string): string;
}

/** Statements inside one transaction, or single ones outside of any. */
export interface Tx {
  readonly dialect: Dialect;
  /** The time that all deadlines are compared with. */
  now(): Promise<number>;
  all(sql: string, ...values: Value[]): Promise<Columns[]>;
  /** How many rows it changed. */
  run(sql: string, ...values: Value[]): Promise<number>;
}

/** One database. What may pass (a lost connection, a full disk) is thrown as `unavailable`. */
export interface Driver {
  /** Other servers may write to it, too. */
  readonly isShared: boolean;
  /** How many transactions were begun so far: as long as it is the same, so are all rows. None where others write, too. */
  readonly writes?: number;
  /** The time, where it need not be asked for. */
  readonly time?: number;
  /** Each statement sees what was committed before it. */
  read<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** One transaction: all of it when it answers, nothing of it when it throws. */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** After the work that was begun. May be called twice. */
  close(): Promise<void>;
}

export async function first(tx: Tx, sql: string, ...values: Value[]): Promise<Columns | undefined> {
  return (await tx.all(sql, ...values))[0];
}

export async function insertInto(
  tx: Tx,
  table: string,
  columns: Columns,
  { onConflict = "" }: { onConflict?: string } = {},
): Promise<number> {
  const names = Object.keys(columns);
  const marks = names.map((_, i) => `$${i + 1}`);
  const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${marks.join(", ")}) ${onConflict}`;
  return tx.run(sql, ...Object.values(columns));
}

export async function update(
  tx: Tx,
  table: string,
  where: readonly [key: string, id: string],
  columns: Columns,
): Promise<void> {
  const sets = Object.keys(columns).map((name, i) => `${name} = $${i + 2}`);
  if (sets.length === 0) return;
  await tx.run(
    `UPDATE ${table} SET ${sets.join(", ")} WHERE ${where[0]} = $1`,
    where[1],
    ...Object.values(columns),
  );
}
