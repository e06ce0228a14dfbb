import { dueAt, type Lease, type Ledger } from "@holdfast/core";
import { type Columns, type Tx, update, type Value } from "./driver.ts";
import { joinedColumns, toLease, toSandbox } from "./rows.ts";

/** A ledger with what the store alone knows of it. */
export interface Known {
  readonly ledger: Ledger;
  /** In order of creation; 0 if there is no sandbox. */
  readonly seq: number;
  /** As written; what it should be is `dueAt(ledger)`. */
  readonly dueAt: number | null;
  readonly ticketOwner: string | null;
  readonly ticketNo: number;
}

/** The keys of one ledger. Also of an id that nothing is known of: its version is 0. */
const BY_ID = "SELECT CAST($1 AS TEXT) AS id";

/** Everything about the ids that the query `keys` gives, in one statement, so that no write shows by half. */
export async function readLedgers(tx: Tx, keys: string, ...values: Value[]): Promise<Known[]> {
  const rows = await tx.all(ledgerQuery(tx, keys), ...values);
  const [head] = rows;
  if (head === undefined) return [];
  const readAt = head.read_at === null ? await tx.now() : Number(head.read_at);
  return grouped(rows).map((group) => toKnown(group, readAt));
}

export async function readLedger(tx: Tx, sandboxId: string): Promise<Known> {
  const [known] = await readLedgers(tx, BY_ID, sandboxId);
  if (known === undefined) throw new Error("a query for one key gave none");
  return known;
}

/** Reads what nobody else can change before this transaction ends. */
export async function lockLedger(tx: Tx, { sandboxId, version }: LedgerKey): Promise<Known> {
  if (version === 0) {
    await tx.run(
      `INSERT INTO work (sandbox_id, provider, version, ticket_no) VALUES ($1, '', 0, 0)
       ON CONFLICT (sandbox_id) DO NOTHING`,
      sandboxId,
    );
  }
  const { forUpdate } = tx.dialect;
  if (forUpdate !== "") await tx.all(`SELECT 1 AS x FROM work WHERE sandbox_id = $1 ${forUpdate}`, sandboxId);
  return readLedger(tx, sandboxId);
}

type LedgerKey = Pick<Ledger, "sandboxId" | "version">;

/** Every write ends here: the version grows, and the row is due when its deadlines say. */
export async function settle<L extends Ledger>(tx: Tx, { ledger }: Known, after: L): Promise<L> {
  const settled = { ...after, version: ledger.version + 1 };
  await update(tx, "work", ["sandbox_id", ledger.sandboxId], {
    ...workColumns(settled),
    version: settled.version,
  });
  return settled;
}

export function workColumns(ledger: Ledger): { due_at: number | null; provider?: string } {
  const provider = (ledger.sandbox ?? ledger.lease ?? ledger.debts[0])?.provider;
  return { due_at: dueAt(ledger), ...(provider !== undefined && { provider }) };
}

/** Neither a sandbox nor an instance that is not gone. */
export function isNothing({ sandbox, lease, debts }: Ledger): boolean {
  return sandbox === undefined && lease === undefined && debts.length === 0;
}

/** The leases that are not gone, in their places. */
export function placed(leases: readonly Lease[]): Pick<Ledger, "lease" | "debts"> {
  return {
    lease: leases.find(({ phase }) => phase !== "gone" && phase !== "debt"),
    debts: leases
      .filter(({ phase }) => phase === "debt")
      .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
  };
}

function ledgerQuery({ dialect }: Tx, keys: string): string {
  return `SELECT k.id AS key_id, ${dialect.clock} AS read_at, s.seq AS seq, w.version AS version, w.due_at AS due_at,
      w.ticket_owner AS ticket_owner, w.ticket_no AS ticket_no, ${joinedColumns}
    FROM (${keys}) k
    LEFT JOIN work w ON w.sandbox_id = k.id
    LEFT JOIN sandbox s ON s.id = k.id
    LEFT JOIN instance i ON i.sandbox_id = k.id AND i.phase <> 'gone'
    ORDER BY s.seq, k.id`;
}

/** Rows of the same key are neighbours. */
function grouped(rows: readonly Columns[]): [Columns, ...Columns[]][] {
  const groups: [Columns, ...Columns[]][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last?.[0].key_id === row.key_id) last?.push(row);
    else groups.push([row]);
  }
  return groups;
}

function toKnown(rows: readonly [Columns, ...Columns[]], readAt: number): Known {
  const [head] = rows;
  const leases = rows.map((row) => toLease(row, "i_")).filter((lease) => lease !== undefined);
  return {
    ledger: {
      sandboxId: String(head.key_id),
      sandbox: toSandbox(head),
      ...placed(leases),
      version: Number(head.version ?? 0),
      readAt,
    },
    seq: Number(head.seq ?? 0),
    dueAt: head.due_at === null || head.due_at === undefined ? null : Number(head.due_at),
    ticketOwner: typeof head.ticket_owner === "string" ? head.ticket_owner : null,
    ticketNo: Number(head.ticket_no ?? 0),
  };
}
