import type { RecordedEntry, TimelineEntry } from "@holdfast/core";
import { insertInto, type Tx } from "./driver.ts";
import { toEntry } from "./rows.ts";

export async function record(
  tx: Tx,
  { sandboxId, at }: { sandboxId: string; at: number },
  entries: readonly TimelineEntry[],
): Promise<void> {
  for (const { type, cause, actor, detail } of entries) {
    await insertInto(tx, "timeline", {
      sandbox_id: sandboxId,
      at,
      type,
      cause: cause ?? null,
      actor: actor ?? null,
      detail: JSON.stringify(detail ?? {}),
    });
  }
}

export async function timeline(
  tx: Tx,
  sandboxId: string,
  { since, limit }: { since: number; limit: number },
): Promise<RecordedEntry[]> {
  const query = "SELECT * FROM timeline WHERE sandbox_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
  return (await tx.all(query, sandboxId, since, limit)).map(toEntry);
}
