import { dueAt } from "@holdfast/core";
import { type Tx, update } from "./driver.ts";
import { UNSETTLED } from "./leases.ts";
import { isNothing, type Known, lockLedger, readLedgers, workColumns } from "./ledgers.ts";

/** One transaction's share: short enough that nobody who waits for it notices. */
const PAGE = 500;

export interface Keeping {
  readonly keepGoneMs: number;
  readonly keepEntries: number;
}

export interface Page {
  readonly repaired: string[];
  readonly forgotten: number;
  /** Where the next page begins; `undefined` after the last one. */
  readonly next: string | undefined;
}

/** Rows that nobody would ever look at again: unsettled, and without a due time. Found at once, however many there are. */
export async function repairForgotten(tx: Tx): Promise<string[]> {
  const rows = await tx.all(
    `SELECT id FROM (${UNSETTLED}) u EXCEPT SELECT sandbox_id FROM work WHERE due_at IS NOT NULL ORDER BY id LIMIT $1`,
    PAGE,
  );
  const ids = rows.map(({ id }) => String(id));
  for (const id of ids) await repair(tx, id);
  return ids;
}

/** Looks at every row in turn, in the order of their ids. */
export async function auditPage(tx: Tx, after: string, keeping: Keeping): Promise<Page> {
  const ids = await idsAfter(tx, after);
  const listed = JSON.stringify(ids);
  const known = await readLedgers(tx, `SELECT id FROM ${tx.dialect.listed("$1")} ids`, listed);
  const wrong = known.filter(isWrong).map(({ ledger }) => ledger.sandboxId);
  for (const id of wrong) await repair(tx, id);
  return {
    repaired: wrong,
    forgotten: (await trimTimelines(tx, listed, keeping)) + (await forgetEmpty(tx, known)),
    next: ids.length < PAGE ? undefined : ids.at(-1),
  };
}

/** What is old enough: tombstones whose time is over, and the evidence of long ago. */
export async function forgetOld(tx: Tx, { keepGoneMs }: Keeping): Promise<number> {
  const now = await tx.now();
  const gone = await tx.run(
    `DELETE FROM instance WHERE instance_id IN (SELECT instance_id FROM instance
       WHERE phase = 'gone' AND evidence_at < $1 ORDER BY evidence_at LIMIT $2)`,
    now - keepGoneMs,
    PAGE,
  );
  return gone + (await forgetBuried(tx, now));
}

async function forgetBuried(tx: Tx, now: number): Promise<number> {
  const expired = "SELECT sandbox_id FROM tombstone WHERE keep_until < $1 ORDER BY keep_until LIMIT $2";
  const ids: string[] = [];
  for (const { sandbox_id } of await tx.all(expired, now, PAGE)) {
    const { ledger } = await lockLedger(tx, { sandboxId: String(sandbox_id), version: 1 });
    // While an instance may still live, what it was is remembered.
    if (isNothing(ledger)) ids.push(ledger.sandboxId);
  }
  for (const table of ["timeline", "instance", "tombstone", "work"]) {
    await tx.run(`DELETE FROM ${table} WHERE sandbox_id IN ${tx.dialect.listed("$1")}`, JSON.stringify(ids));
  }
  return ids.length;
}

/** A missing row counts, too: it is there under version 0. */
function isWrong({ ledger, dueAt: written }: Known): boolean {
  return written !== dueAt(ledger) || (ledger.version === 0 && !isNothing(ledger));
}

/** Decided anew under the lock; what was written since the look is right already. */
async function repair(tx: Tx, sandboxId: string): Promise<void> {
  const { ledger } = await lockLedger(tx, { sandboxId, version: 0 });
  await update(tx, "work", ["sandbox_id", sandboxId], {
    ...workColumns(ledger),
    version: Math.max(1, ledger.version),
  });
}

async function idsAfter(tx: Tx, after: string): Promise<string[]> {
  const part = (id: string, table: string) =>
    `SELECT id FROM (SELECT ${id} AS id FROM ${table} WHERE ${id} > $1 ORDER BY ${id} LIMIT $2) ${table}_ids`;
  const rows = await tx.all(
    `SELECT id FROM (${part("sandbox_id", "work")} UNION ${part("id", "sandbox")}) ids ORDER BY id LIMIT $2`,
    after,
    PAGE,
  );
  return rows.map(({ id }) => String(id));
}

async function trimTimelines(tx: Tx, listed: string, { keepEntries }: Keeping): Promise<number> {
  const long = await tx.all(
    `SELECT sandbox_id FROM timeline WHERE sandbox_id IN ${tx.dialect.listed("$1")}
     GROUP BY sandbox_id HAVING count(*) > $2`,
    listed,
    keepEntries,
  );
  let trimmed = 0;
  for (const { sandbox_id } of long) {
    trimmed += await tx.run(
      `DELETE FROM timeline WHERE sandbox_id = $1 AND seq <=
         (SELECT seq FROM timeline WHERE sandbox_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)`,
      String(sandbox_id),
      keepEntries,
    );
  }
  return trimmed;
}

/** An orphan's id of which neither an instance nor a tombstone is left. */
async function forgetEmpty(tx: Tx, known: readonly Known[]): Promise<number> {
  let forgotten = 0;
  for (const { ledger } of known.filter(({ ledger }) => isNothing(ledger))) {
    // Where the version is still the same, nothing was found since the look.
    const removed = await tx.run(
      `DELETE FROM work WHERE sandbox_id = $1 AND version = $2
         AND NOT EXISTS (SELECT 1 FROM instance WHERE sandbox_id = $1)
         AND NOT EXISTS (SELECT 1 FROM tombstone WHERE sandbox_id = $1)`,
      ledger.sandboxId,
      ledger.version,
    );
    if (removed === 1) await tx.run("DELETE FROM timeline WHERE sandbox_id = $1", ledger.sandboxId);
    forgotten += removed;
  }
  return forgotten;
}
