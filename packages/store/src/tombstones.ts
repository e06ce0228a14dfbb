import { type Holding, isHolding, type Ticket, type Tombstone } from "@holdfast/core";
import { first, insertInto, type Tx } from "./driver.ts";
import { lockLedger, settle } from "./ledgers.ts";
import { toTombstone } from "./rows.ts";
import { isStillTrue } from "./saving.ts";
import { record } from "./timelines.ts";

export interface Burial {
  readonly before: Holding;
  readonly keepUntil: number;
  readonly ticket: Ticket | undefined;
}

export async function bury(tx: Tx, { before, keepUntil, ticket }: Burial): Promise<boolean> {
  const known = await lockLedger(tx, before);
  const { ledger } = known;
  if (!isHolding(ledger) || !isStillTrue(known, { before, ticket })) return false;
  if (ledger.lease !== undefined || ledger.sandbox.hasDisk) return false;
  const { id, name, generation, fence, deleteReason } = ledger.sandbox;
  const at = ledger.readAt;
  await insertInto(tx, "tombstone", {
    sandbox_id: id,
    name,
    generation,
    fence,
    deleted_at: at,
    cause: deleteReason,
    keep_until: keepUntil,
  });
  await record(tx, { sandboxId: id, at }, [
    { type: "deleted", ...(deleteReason !== null && { cause: deleteReason }) },
  ]);
  await tx.run("DELETE FROM instance WHERE sandbox_id = $1 AND phase = 'gone'", id);
  await tx.run("DELETE FROM sandbox WHERE id = $1", id);
  await settle(tx, known, { ...ledger, sandbox: undefined });
  return true;
}

/** The latest one under this id or name. */
export async function tombstone(tx: Tx, idOrName: string): Promise<Tombstone | undefined> {
  const row = await first(
    tx,
    "SELECT * FROM tombstone WHERE sandbox_id = $1 OR name = $1 ORDER BY generation DESC, deleted_at DESC LIMIT 1",
    idOrName,
  );
  return row === undefined ? undefined : toTombstone(row);
}

export async function tombstonesAmong(tx: Tx, ids: readonly string[]): Promise<Set<string>> {
  const rows = await tx.all(
    `SELECT sandbox_id FROM tombstone WHERE sandbox_id IN ${tx.dialect.listed("$1")}`,
    JSON.stringify(ids),
  );
  return new Set(rows.map(({ sandbox_id }) => String(sandbox_id)));
}

/** Where a new sandbox of this name goes on counting. */
export async function numbersUnderName(tx: Tx, name: string): Promise<{ generation: number; fence: number }> {
  const row = await first(
    tx,
    "SELECT max(generation) AS generation, max(fence) AS fence FROM tombstone WHERE name = $1",
    name,
  );
  return { generation: Number(row?.generation ?? 0), fence: Number(row?.fence ?? 0) };
}
