import type { Lease } from "@holdfast/core";
import type { Columns, Tx } from "./driver.ts";
import { toLease } from "./rows.ts";

/** Sandbox ids that somebody must still bring to an end, or keep. */
export const UNSETTLED = `SELECT sandbox_id AS id FROM instance WHERE phase <> 'gone'
  UNION SELECT id FROM sandbox WHERE desired = 'deleted'`;

export async function unsettled(tx: Tx): Promise<string[]> {
  // Both: a row that has lost its due time is still found, and so is a turn that only has one.
  const rows = await tx.all(
    `${UNSETTLED} UNION SELECT sandbox_id FROM work WHERE due_at IS NOT NULL ORDER BY id`,
  );
  return rows.map(({ id }) => String(id));
}

export async function leasesOf(tx: Tx, provider: string): Promise<Lease[]> {
  return toLeases(await tx.all("SELECT * FROM instance WHERE provider = $1 ORDER BY instance_id", provider));
}

export async function leases(tx: Tx, { after, limit }: { after?: string; limit: number }): Promise<Lease[]> {
  const query = "SELECT * FROM instance WHERE instance_id > $1 ORDER BY instance_id LIMIT $2";
  return toLeases(await tx.all(query, after ?? "", limit));
}

function toLeases(rows: readonly Columns[]): Lease[] {
  return rows.map((row) => toLease(row)).filter((lease) => lease !== undefined);
}
