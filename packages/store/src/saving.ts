import type { Change, Lease, Ledger, Ticket } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { first, insertInto, type Tx, update } from "./driver.ts";
import { isNothing, type Known, lockLedger, placed, settle } from "./ledgers.ts";
import { leaseColumns, sandboxColumns } from "./rows.ts";
import { record } from "./timelines.ts";

export interface Decision {
  readonly before: Ledger;
  readonly change: Change;
  readonly ticket?: Ticket | undefined;
}

export async function save(tx: Tx, { before, change, ticket }: Decision): Promise<Ledger | undefined> {
  const known = await lockLedger(tx, before);
  return isStillTrue(known, { before, ticket }) ? apply(tx, known, change) : undefined;
}

/** Of a ledger that this transaction has locked. */
export async function apply(tx: Tx, known: Known, change: Change): Promise<Ledger> {
  const { ledger } = known;
  if (change.sandbox !== undefined && ledger.sandbox === undefined) {
    throw defect(`there is no sandbox ${ledger.sandboxId} to change`);
  }
  if (change.sandbox !== undefined) {
    await update(tx, "sandbox", ["id", ledger.sandboxId], sandboxColumns(change.sandbox));
  }
  const leases = await changeLeases(tx, ledger, change.leases ?? {});
  if (change.found !== undefined) leases.push(await addFound(tx, ledger, change.found));
  await record(tx, { sandboxId: ledger.sandboxId, at: ledger.readAt }, change.entries ?? []);
  return settle(tx, known, {
    ...ledger,
    sandbox: ledger.sandbox === undefined ? undefined : { ...ledger.sandbox, ...change.sandbox },
    ...placed(leases),
  });
}

/** Nothing happened since `before` was read, and the ticket, if the decision was made under one, is still held. */
export function isStillTrue(
  { ledger, ticketOwner, ticketNo }: Known,
  { before, ticket }: Pick<Decision, "before" | "ticket">,
): boolean {
  // Who knows of nothing has no version to name, though an id of which nothing is left has one.
  const sameVersion = before.version === ledger.version || (before.version === 0 && isNothing(ledger));
  if (ticket === undefined) return sameVersion;
  return sameVersion && ticketOwner === ticket.owner && ticketNo === ticket.no;
}

async function changeLeases(
  tx: Tx,
  ledger: Ledger,
  changes: Readonly<Record<string, Partial<Lease>>>,
): Promise<Lease[]> {
  const leases = [...(ledger.lease === undefined ? [] : [ledger.lease]), ...ledger.debts];
  for (const [instanceId, change] of Object.entries(changes)) {
    const index = leases.findIndex((lease) => lease.instanceId === instanceId);
    const lease = leases[index];
    if (lease === undefined) {
      throw defect(`instance ${instanceId} is gone or not one of sandbox ${ledger.sandboxId}`);
    }
    await update(tx, "instance", ["instance_id", instanceId], leaseColumns(change));
    leases[index] = { ...lease, ...change };
  }
  return leases;
}

/** A new row, or one that was closed and turns out to be alive: its evidence was wrong. */
async function addFound(tx: Tx, ledger: Ledger, found: Lease): Promise<Lease> {
  const row = await first(
    tx,
    "SELECT sandbox_id, phase FROM instance WHERE instance_id = $1",
    found.instanceId,
  );
  if (found.sandboxId !== ledger.sandboxId || (row !== undefined && row.sandbox_id !== ledger.sandboxId)) {
    throw defect(`instance ${found.instanceId} is not one of sandbox ${ledger.sandboxId}`);
  }
  if (row === undefined) await insertInto(tx, "instance", leaseColumns(found));
  else if (row.phase !== "gone") throw defect(`instance ${found.instanceId} has a lease already`);
  else await update(tx, "instance", ["instance_id", found.instanceId], leaseColumns(found));
  return found;
}

function defect(what: string): HoldfastError {
  return new HoldfastError("internal", what, { hint: "this is a defect in Holdfast: please report it" });
}
