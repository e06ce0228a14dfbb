import { type Ledger, shifted } from "@holdfast/core";
import { first, type Tx } from "./driver.ts";
import { saveHost } from "./hosts.ts";
import { unsettled } from "./leases.ts";
import { lockLedger, workColumns } from "./ledgers.ts";
import { apply } from "./saving.ts";

/** Time that nobody was there to see, or by which the clock was set; then it goes backwards, too. */
export interface Unseen {
  readonly from: number;
  readonly to: number;
}

/**
 * Moves every wait on a provider, and says that somebody is there now. One transaction, however many rows there are: done
 * by halves and then again, a wait that was moved twice would be over too early.
 */
export async function giveBack(tx: Tx, provider: string, unseen: Unseen): Promise<Ledger[] | undefined> {
  const seen = `SELECT last_seen_at FROM host WHERE provider = $1 ${tx.dialect.forUpdate}`;
  const host = await first(tx, seen, provider);
  if (host === undefined || host.last_seen_at === null || Number(host.last_seen_at) !== unseen.from)
    return undefined;
  const moved: Ledger[] = [];
  for (const sandboxId of await unsettled(tx)) {
    const known = await lockLedger(tx, { sandboxId, version: 0 });
    if (workColumns(known.ledger).provider !== provider) continue;
    moved.push(await apply(tx, known, shifted(known.ledger, unseen)));
  }
  await createdBy(tx, provider, unseen.to);
  await saveHost(tx, provider, { lastSeenAt: unseen.to });
  return moved;
}

/** Those that wait for nothing, too: what becomes due at once later must not wait for the time of its creation. */
async function createdBy(tx: Tx, provider: string, now: number): Promise<void> {
  await tx.run("UPDATE sandbox SET created_at = $1 WHERE provider = $2 AND created_at > $1", now, provider);
}
