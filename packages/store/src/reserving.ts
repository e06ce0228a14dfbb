import {
  type AdmissionRules,
  type Holding,
  inTheWay,
  isHolding,
  type Lease,
  type NewLease,
  refusalOf,
  type Usage,
  untouchedLease,
  without,
} from "@holdfast/core";
import { first, insertInto, type Tx, update } from "./driver.ts";
import { lockLedger, settle } from "./ledgers.ts";
import { leaseColumns, sandboxColumns } from "./rows.ts";
import { isStillTrue } from "./saving.ts";

export interface Wish {
  readonly lease: NewLease;
  readonly rules: AdmissionRules;
}

export async function reserve(tx: Tx, before: Holding, wish: Wish): Promise<Holding | undefined> {
  await queueForAdmission(tx);
  const known = await lockLedger(tx, before);
  const { ledger } = known;
  if (!isHolding(ledger) || !isStillTrue(known, { before }) || !mayLaunch(ledger)) return undefined;
  return settle(tx, known, await launch(tx, ledger, wish));
}

/**
 * One reservation at a time, whatever it is for: a quota spans providers, a slot spans tenants. What was reserved
 * before is committed when this returns, so it is counted.
 */
export async function queueForAdmission(tx: Tx): Promise<void> {
  if (tx.dialect.forUpdate !== "") await tx.all(`SELECT id FROM installation ${tx.dialect.forUpdate}`);
}

/** Writes the intent, with the next generation and fence, if there is room; throws why there is none. */
export async function launch(tx: Tx, ledger: Holding, { lease, rules }: Wish): Promise<Holding> {
  await admit(tx, lease, { rules, holdsItAlready: false });
  const next = {
    desired: "active",
    generation: ledger.sandbox.generation + 1,
    fence: ledger.sandbox.fence + 1,
    hasDisk: true,
  } as const;
  const reserved: Lease = { ...untouchedLease, ...lease, generation: next.generation, fence: next.fence };
  await update(tx, "sandbox", ["id", ledger.sandboxId], sandboxColumns(next));
  await insertInto(tx, "instance", leaseColumns(reserved));
  return { ...ledger, sandbox: { ...ledger.sandbox, ...next }, lease: reserved };
}

/** Throws why there is no room. What is given away has its room already, and needs only a place among its tenant's. */
export async function admit(
  tx: Tx,
  lease: NewLease,
  { rules, holdsItAlready }: { rules: AdmissionRules; holdsItAlready: boolean },
): Promise<void> {
  const held = await usage(tx, lease);
  const others = holdsItAlready ? without(held, lease.reservation, 1) : held;
  const refusal = refusalOf(others, lease.reservation, rules);
  if (refusal !== undefined) throw refusal;
}

function mayLaunch(holding: Holding): boolean {
  const { sandbox } = holding;
  const leftover = sandbox.policy.filesystem === "ephemeral" && sandbox.hasDisk;
  return sandbox.desired !== "deleted" && inTheWay(holding) === undefined && !leftover;
}

/** A debt may still run, so its host is charged for it; its tenant is not. */
async function usage(tx: Tx, { tenantId, provider }: NewLease): Promise<Usage> {
  const row = await first(
    tx,
    `SELECT count(*) FILTER (WHERE tenant_id = $1 AND phase <> 'debt') AS tenant_instances,
       count(*) FILTER (WHERE provider = $2) AS instances,
       sum(res_memory_b) FILTER (WHERE provider = $2) AS memory_bytes,
       sum(res_disk_b) FILTER (WHERE provider = $2) AS disk_bytes
     FROM instance WHERE phase <> 'gone'`,
    tenantId,
    provider,
  );
  return {
    tenantInstances: Number(row?.tenant_instances),
    instances: Number(row?.instances),
    memoryBytes: Number(row?.memory_bytes),
    diskBytes: Number(row?.disk_bytes),
  };
}
