import {
  type AdmissionRules,
  givenAway,
  type Holding,
  isHolding,
  isReadySpare,
  type ListFilter,
  type NewSandbox,
  NOBODY,
  type SandboxRow,
  stateOf,
  type TimelineEntry,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { first, insertInto, type Tx, update } from "./driver.ts";
import { lockLedger, readLedger, readLedgers, settle } from "./ledgers.ts";
import { admit, launch, queueForAdmission, type Wish } from "./reserving.ts";
import { leaseColumns, sandboxColumns } from "./rows.ts";
import { isStillTrue } from "./saving.ts";
import { assertRestorable } from "./snapshots.ts";
import { record } from "./timelines.ts";
import { numbersUnderName } from "./tombstones.ts";

/** A spare is not a sandbox to those who ask for one. */
const OWNED = `tenant_id <> '${NOBODY}'`;

/** Rows read at once when a list is filtered, which the rows only imply. */
const PAGE = 200;

export interface Creation {
  readonly row: NewSandbox;
  readonly idempotencyKey: string | undefined;
  readonly entry: TimelineEntry;
  readonly wish: Wish | undefined;
}

export async function insertSandbox(tx: Tx, creation: Creation): Promise<Holding> {
  const { row, idempotencyKey, entry, wish } = creation;
  const columns = sandboxColumns({ ...row, generation: 0, fence: 0, claimFence: 0, hasDisk: false });
  const key = { idempotency_key: idempotencyKey ?? null };
  const inserted = await insertInto(
    tx,
    "sandbox",
    { ...columns, ...key },
    { onConflict: "ON CONFLICT DO NOTHING" },
  );
  if (inserted === 0) return existing(tx, creation);
  if (row.restoresFrom !== null) await assertRestorable(tx, row.restoresFrom);
  if (wish !== undefined) await queueForAdmission(tx);
  // Only now: the name's last owner may have been buried while the insertion waited for the name.
  await update(tx, "sandbox", ["id", row.id], await numbersUnderName(tx, row.name));
  const known = await lockLedger(tx, { sandboxId: row.id, version: 0 });
  const holding = must(known.ledger);
  await record(tx, { sandboxId: row.id, at: holding.readAt }, [entry]);
  return settle(tx, known, wish === undefined ? holding : await launch(tx, holding, wish));
}

export interface Giving {
  readonly spare: Holding;
  readonly row: NewSandbox;
  readonly idempotencyKey: string | undefined;
  readonly entry: TimelineEntry;
  readonly rules: AdmissionRules;
}

/** Thrown to undo the transaction: the key, or the name, is another sandbox's. */
export class NotGiven extends Error {}

export async function give(tx: Tx, giving: Giving): Promise<Holding | undefined> {
  const { spare, idempotencyKey, entry, rules } = giving;
  const known = await lockLedger(tx, spare);
  const { ledger } = known;
  if (!isStillTrue(known, { before: spare }) || !isHolding(ledger) || !isReadySpare(ledger)) return undefined;
  const { id, generation, fence, claimFence, hasDisk } = ledger.sandbox;
  const sandbox = { ...giving.row, id, name: id, generation, fence, claimFence, hasDisk };
  // A row of its own: in a list it comes after those that were created before.
  await tx.run("DELETE FROM sandbox WHERE id = $1", id);
  const columns = { ...sandboxColumns(sandbox), idempotency_key: idempotencyKey ?? null };
  if ((await insertInto(tx, "sandbox", columns, { onConflict: "ON CONFLICT DO NOTHING" })) === 0)
    throw new NotGiven();
  const change = givenAway(sandbox, ledger.readAt);
  const lease = { ...ledger.lease, ...change };
  // In the order of `insertSandbox`: two who wait for each other would both have to give up.
  await queueForAdmission(tx);
  await admit(tx, lease, { rules, holdsItAlready: true });
  await update(tx, "instance", ["instance_id", lease.instanceId], leaseColumns(change));
  await record(tx, { sandboxId: id, at: ledger.readAt }, [entry]);
  return settle(tx, known, { ...ledger, sandbox, lease });
}

export async function spares(tx: Tx, provider: string): Promise<Holding[]> {
  const keys = `SELECT sandbox_id AS id FROM instance
    WHERE provider = $1 AND tenant_id = '${NOBODY}' AND phase NOT IN ('gone', 'debt')`;
  return (await readLedgers(tx, keys, provider)).map(({ ledger }) => ledger).filter(isHolding);
}

/** What stood in the way: the first sandbox of the same key is the answer, any other is an error. */
async function existing(tx: Tx, { row, idempotencyKey }: Creation): Promise<Holding> {
  if (idempotencyKey !== undefined) {
    const same = await first(tx, "SELECT id FROM sandbox WHERE idempotency_key = $1", idempotencyKey);
    if (same !== undefined) return must((await readLedger(tx, String(same.id))).ledger);
  }
  if ((await first(tx, "SELECT id FROM sandbox WHERE name = $1", row.name)) !== undefined) {
    throw nameTaken(row.name);
  }
  throw new HoldfastError("unavailable", `the name ${row.name} was given up in this moment`, {
    hint: "ask again",
    started: "no",
  });
}

/** By id or by name; if one sandbox's name is another's id, the id counts. */
export async function find(tx: Tx, idOrName: string): Promise<Holding | undefined> {
  const keys = `SELECT id FROM sandbox WHERE (id = $1 OR name = $1) AND ${OWNED}`;
  const found = (await readLedgers(tx, keys, idOrName)).map(({ ledger }) => must(ledger));
  return found.find(({ sandboxId }) => sandboxId === idOrName) ?? found[0];
}

export async function list(tx: Tx, filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }> {
  const holdings: Holding[] = [];
  // One more than was asked for tells whether there are more.
  const size = filter.label === undefined && filter.states === undefined ? filter.limit + 1 : PAGE;
  let after = filter.after ?? 0;
  for (;;) {
    const page = await readLedgers(
      tx,
      `SELECT id FROM sandbox WHERE seq > $1 AND ${OWNED} ORDER BY seq LIMIT $2`,
      after,
      size,
    );
    for (const { ledger, seq } of page) {
      const holding = must(ledger);
      if (!matches(holding, filter)) continue;
      if (holdings.length === filter.limit) return { holdings, next: after };
      holdings.push(holding);
      after = seq;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < size) return { holdings };
    after = last.seq;
  }
}

/** Which of these exist. */
export async function sandboxesAmong(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, Pick<SandboxRow, "generation" | "fence" | "hasDisk" | "desired">>> {
  const rows = await tx.all(
    `SELECT id, generation, fence, has_disk, desired FROM sandbox WHERE id IN ${tx.dialect.listed("$1")}`,
    JSON.stringify(ids),
  );
  return new Map(
    rows.map(({ id, generation, fence, has_disk, desired }) => [
      String(id),
      {
        generation: Number(generation),
        fence: Number(fence),
        hasDisk: Number(has_disk) === 1,
        desired: desired as SandboxRow["desired"],
      },
    ]),
  );
}

function matches(holding: Holding, { label, states }: ListFilter): boolean {
  if (states !== undefined && !states.includes(stateOf(holding))) return false;
  if (label === undefined) return true;
  const value = holding.sandbox.labels[label.key];
  return label.value === undefined ? value !== undefined : value === label.value;
}

function must(ledger: Parameters<typeof isHolding>[0]): Holding {
  if (isHolding(ledger)) return ledger;
  throw new HoldfastError("internal", `sandbox ${ledger.sandboxId} vanished in a transaction`);
}

function nameTaken(name: string): HoldfastError {
  return new HoldfastError("already_exists", `a sandbox named ${name} exists already`, {
    hint: "choose another name, or use get-or-create (PUT /v1/sandboxes/by-name/{name}) to share it",
    started: "no",
  });
}
