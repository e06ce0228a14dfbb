import type { Job, TakeOptions } from "@holdfast/core";
import type { Tx } from "./driver.ts";
import { FREE, JOB, TAKE, toTicket } from "./tickets.ts";

export async function addJob(tx: Tx, name: string, dueAt: number): Promise<void> {
  await tx.run(
    `INSERT INTO job (name, due_at, memory, ticket_no) VALUES ($1, $2, '{}', 0) ON CONFLICT (name) DO NOTHING`,
    name,
    dueAt,
  );
}

export async function takeJobs(tx: Tx, options: TakeOptions): Promise<Job[]> {
  const now = await tx.now();
  const rows = await tx.all(
    `WITH picked AS (
       SELECT name FROM job WHERE due_at <= $1 AND ${FREE} ORDER BY due_at, name ${tx.dialect.skipLocked}
     )
     UPDATE job SET ${TAKE} WHERE name IN (SELECT name FROM picked)
     RETURNING name, due_at, memory, ticket_no, ticket_until`,
    now,
    options.owner,
    now + options.ttlMs,
  );
  return rows
    .sort((a, b) => Number(a.due_at) - Number(b.due_at))
    .map((row) => ({
      name: String(row.name),
      ticket: toTicket(row, { ...options, key: `${JOB}${row.name}` }),
      readAt: now,
      memory: JSON.parse(String(row.memory)),
    }));
}

export async function finishJob(
  tx: Tx,
  { name, ticket }: Job,
  next: { dueAt: number; memory: Record<string, unknown> },
): Promise<void> {
  await tx.run(
    `UPDATE job SET due_at = $1, memory = $2, ticket_owner = NULL, ticket_until = NULL
     WHERE name = $3 AND ticket_no = $4 AND ticket_owner = $5`,
    next.dueAt,
    JSON.stringify(next.memory),
    name,
    ticket.no,
    ticket.owner,
  );
}

/** One that is running is not brought forward: it was due, and says itself when it is due again. */
export async function hurryJob(tx: Tx, name: string): Promise<void> {
  await tx.run("UPDATE job SET due_at = $1 WHERE name = $2 AND due_at > $1", await tx.now(), name);
}
