import type { KnownSnapshot, SnapshotFilter, SnapshotRow } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type Columns, first, insertInto, type Tx, type Value } from "./driver.ts";
import { snapshotColumns, toSnapshot } from "./rows.ts";

/** Rows read at once when a list is filtered by a label. */
const PAGE = 200;

const WITH_USES = `SELECT snapshot.*,
  (SELECT count(*) FROM sandbox WHERE restores_from = snapshot.id) AS used_by FROM snapshot`;

export async function insertSnapshot(
  tx: Tx,
  row: SnapshotRow,
  idempotencyKey: string | undefined,
): Promise<KnownSnapshot> {
  const columns = { ...snapshotColumns(row), idempotency_key: idempotencyKey ?? null };
  const inserted = await insertInto(tx, "snapshot", columns, { onConflict: "ON CONFLICT DO NOTHING" });
  if (inserted > 0) return { ...row, usedBy: 0 };
  const same = await first(tx, `${WITH_USES} WHERE idempotency_key = $1`, idempotencyKey ?? null);
  if (same !== undefined) return toKnown(same);
  throw new HoldfastError("already_exists", `a snapshot named ${row.name} exists already`, {
    hint: "choose another name, or delete that one first",
    started: "no",
  });
}

/** By id or by name; if one's name is another's id, the id counts. */
export async function snapshot(tx: Tx, idOrName: string): Promise<KnownSnapshot | undefined> {
  const rows = (await tx.all(`${WITH_USES} WHERE id = $1 OR name = $1`, idOrName)).map(toKnown);
  return rows.find(({ id }) => id === idOrName) ?? rows[0];
}

export async function snapshots(
  tx: Tx,
  filter: SnapshotFilter,
): Promise<{ snapshots: KnownSnapshot[]; next?: number }> {
  const found: KnownSnapshot[] = [];
  let after = filter.after ?? 0;
  for (;;) {
    const page = await pageOf(tx, filter, after);
    for (const row of page) {
      const known = toKnown(row);
      if (matches(known, filter)) {
        if (found.length === filter.limit) return { snapshots: found, next: after };
        found.push(known);
      }
      after = Number(row.seq);
    }
    if (page.length < PAGE) return { snapshots: found };
  }
}

async function pageOf(tx: Tx, { sandboxId, provider }: SnapshotFilter, after: number): Promise<Columns[]> {
  const values: Value[] = [after, PAGE];
  const where = (column: string, value: string | undefined): string =>
    value === undefined ? "" : ` AND ${column} = $${values.push(value)}`;
  const conditions = where("sandbox_id", sandboxId) + where("provider", provider);
  return tx.all(`${WITH_USES} WHERE seq > $1${conditions} ORDER BY seq LIMIT $2`, ...values);
}

function matches({ labels }: SnapshotRow, { label }: SnapshotFilter): boolean {
  if (label === undefined) return true;
  const value = labels[label.key];
  return label.value === undefined ? value !== undefined : value === label.value;
}

export async function saveSnapshot(
  tx: Tx,
  { id, version }: SnapshotRow,
  change: Partial<Omit<SnapshotRow, "id" | "version">>,
): Promise<KnownSnapshot | undefined> {
  const columns = snapshotColumns({ ...change, version: version + 1 });
  const sets = Object.keys(columns).map((name, i) => `${name} = $${i + 3}`);
  const sql = `UPDATE snapshot SET ${sets.join(", ")} WHERE id = $1 AND version = $2`;
  const changed = await tx.run(sql, id, version, ...Object.values(columns));
  return changed === 0 ? undefined : snapshot(tx, id);
}

/** One statement, so that no sandbox that begins with it comes between the count and the removal. */
export async function forgetSnapshot(tx: Tx, { id, version }: SnapshotRow): Promise<boolean> {
  const sql = `DELETE FROM snapshot WHERE id = $1 AND version = $2 AND phase = 'deleting'
    AND NOT EXISTS (SELECT 1 FROM sandbox WHERE restores_from = $1)`;
  return (await tx.run(sql, id, version)) > 0;
}

/** In the transaction that names it in a sandbox: until that is over, nobody orders its removal. */
export async function assertRestorable(tx: Tx, id: string): Promise<void> {
  const row = await first(tx, `SELECT name, phase FROM snapshot WHERE id = $1 ${tx.dialect.forUpdate}`, id);
  if (row?.phase === "ready") return;
  throw new HoldfastError(
    row === undefined ? "not_found" : "wrong_state",
    row === undefined
      ? `there is no snapshot ${id}`
      : `a sandbox cannot be made from snapshot ${row.name}: it is ${row.phase}`,
    { hint: "list those that are ready: `holdfast snapshot ls`, GET /v1/snapshots", started: "no" },
  );
}

function toKnown(columns: Columns): KnownSnapshot {
  return { ...toSnapshot(columns), usedBy: Number(columns.used_by) };
}
