import type { TakeOptions, Ticket } from "@holdfast/core";
import { type Columns, type Dialect, first, type Tx } from "./driver.ts";

/** Jobs and sandboxes are apart in their tickets' keys; no sandbox's id begins so. */
export const JOB = "job:";

/** Nobody has it, or whoever had it let its time pass; `$1` is now. */
export const FREE = "(ticket_until IS NULL OR ticket_until <= $1)";

export const TAKE = "ticket_owner = $2, ticket_no = ticket_no + 1, ticket_until = $3";

export async function ticket(tx: Tx, sandboxId: string, options: TakeOptions): Promise<Ticket | undefined> {
  const now = await tx.now();
  const row = await first(
    tx,
    `UPDATE work SET ${TAKE} WHERE sandbox_id = $4 AND ${FREE} RETURNING ticket_no, ticket_until`,
    now,
    options.owner,
    now + options.ttlMs,
    sandboxId,
  );
  return row === undefined ? undefined : toTicket(row, { ...options, key: sandboxId });
}

export async function takeDue(
  tx: Tx,
  options: TakeOptions & { limit: number; except: readonly string[] },
): Promise<Ticket[]> {
  const now = await tx.now();
  const rows = await tx.all(
    takeDueQuery(tx.dialect),
    now,
    options.owner,
    now + options.ttlMs,
    JSON.stringify(options.except),
    options.limit,
  );
  return rows
    .sort((a, b) => Number(a.due_at) - Number(b.due_at))
    .map((row) => toTicket(row, { ...options, key: String(row.sandbox_id) }));
}

/** Two statements in one: what another server is just taking is passed over, not waited for. */
export function takeDueQuery({ skipLocked, listed }: Dialect): string {
  return `WITH picked AS (
      SELECT sandbox_id FROM work
      WHERE due_at IS NOT NULL AND due_at <= $1 AND ${FREE} AND provider NOT IN ${listed("$4")}
      ORDER BY due_at, sandbox_id LIMIT $5 ${skipLocked}
    )
    UPDATE work SET ${TAKE} WHERE sandbox_id IN (SELECT sandbox_id FROM picked)
    RETURNING sandbox_id, due_at, ticket_no, ticket_until`;
}

/** Also when its time is over, as long as nobody else took it: then nothing was decided in between. */
export async function renew(tx: Tx, held: Ticket): Promise<Ticket | undefined> {
  const until = (await tx.now()) + held.ttlMs;
  const { table, name, id } = placeOf(held);
  const renewed = await tx.run(
    `UPDATE ${table} SET ticket_until = $1 WHERE ${name} = $2 AND ticket_no = $3 AND ticket_owner = $4`,
    until,
    id,
    held.no,
    held.owner,
  );
  return renewed === 1 ? { ...held, until } : undefined;
}

export async function release(tx: Tx, held: Ticket): Promise<void> {
  const { table, name, id } = placeOf(held);
  await tx.run(
    `UPDATE ${table} SET ticket_owner = NULL, ticket_until = NULL
     WHERE ${name} = $1 AND ticket_no = $2 AND ticket_owner = $3`,
    id,
    held.no,
    held.owner,
  );
}

/** What somebody works on is due again when that ticket's time is over; if it is released before, its holder knows. */
export async function nextDueAt(
  tx: Tx,
  { except }: { except: readonly string[] },
): Promise<number | undefined> {
  const row = await first(
    tx,
    `SELECT
       (SELECT due_at FROM work WHERE due_at IS NOT NULL AND ${FREE} AND provider NOT IN ${tx.dialect.listed("$2")}
        ORDER BY due_at, sandbox_id LIMIT 1) AS free,
       (SELECT min(${LATER}) FROM work WHERE ticket_until > $1 AND due_at IS NOT NULL
        AND provider NOT IN ${tx.dialect.listed("$2")}) AS taken,
       (SELECT min(CASE WHEN ${FREE} THEN due_at ELSE ${LATER} END) FROM job) AS job`,
    await tx.now(),
    JSON.stringify(except),
  );
  const times = [row?.free, row?.taken, row?.job].filter((time) => time !== null && time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times.map(Number));
}

const LATER = "CASE WHEN due_at > ticket_until THEN due_at ELSE ticket_until END";

export function toTicket(row: Columns, { key, owner, ttlMs }: TakeOptions & { key: string }): Ticket {
  return { key, owner, no: Number(row.ticket_no), until: Number(row.ticket_until), ttlMs };
}

function placeOf({ key }: Ticket): { table: string; name: string; id: string } {
  return key.startsWith(JOB)
    ? { table: "job", name: "name", id: key.slice(JOB.length) }
    : { table: "work", name: "sandbox_id", id: key };
}
