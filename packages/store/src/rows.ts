import {
  type Lease,
  type Phase,
  phases,
  type RecordedEntry,
  type SandboxRow,
  type SnapshotRow,
  type Tombstone,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Columns, Value } from "./driver.ts";

type Kind = "text" | "integer" | "flag" | "json";
type Kinds = Readonly<Record<string, Kind>>;

/** Remembered: there are a few dozen names, and every write converts some of them. */
const columnNames = new Map<string, string>();

const sandboxKinds = {
  id: "text",
  name: "text",
  tenantId: "text",
  provider: "text",
  spec: "json",
  policy: "json",
  labels: "json",
  desired: "text",
  deleteMode: "text",
  deleteReason: "text",
  generation: "integer",
  fence: "integer",
  hasDisk: "flag",
  createdAt: "integer",
  lastUsedAt: "integer",
  turns: "json",
  claim: "json",
  claimFence: "integer",
  launchFailures: "integer",
  failure: "text",
  lastDeath: "json",
  diskRetryAt: "integer",
  diskAttempts: "integer",
  ports: "json",
  restoresFrom: "text",
  diskHistory: "json",
} as const satisfies Record<keyof SandboxRow, Kind>;

/** The fields that have one column; evidence and reservation have several, because SQL compares and sums them. */
const leaseKinds = {
  instanceId: "text",
  installationId: "text",
  sandboxId: "text",
  tenantId: "text",
  provider: "text",
  generation: "integer",
  fence: "integer",
  origin: "text",
  phase: "text",
  secret: "text",
  limits: "json",
  createdAt: "integer",
  notAfter: "integer",
  createSentAt: "integer",
  settleUntil: "integer",
  startupDeadlineAt: "integer",
  admittedAt: "integer",
  idleCheckAt: "integer",
  hardStopAt: "integer",
  stopReason: "text",
  stopMode: "text",
  attempts: "integer",
  attemptDeadlineAt: "integer",
  nextAttemptAt: "integer",
  missingSince: "integer",
  lastError: "text",
} as const satisfies Record<Exclude<keyof Lease, "reservation" | "evidence">, Kind>;

const snapshotKinds = {
  id: "text",
  name: "text",
  tenantId: "text",
  provider: "text",
  sandboxId: "text",
  generation: "integer",
  origin: "text",
  spec: "json",
  labels: "json",
  phase: "text",
  parts: "json",
  checksum: "text",
  copiedBytes: "integer",
  createdAt: "integer",
  expiresAt: "integer",
  failure: "text",
  owner: "text",
  busyUntil: "integer",
  version: "integer",
} as const satisfies Record<keyof SnapshotRow, Kind>;

const reservationColumns = ["res_memory_b", "res_disk_b"] as const;
const evidenceColumns = ["evidence_kind", "evidence_at", "evidence_detail"] as const;

const sandboxFields = fieldsOf(sandboxKinds);
const leaseFields = fieldsOf(leaseKinds);
const snapshotFields = fieldsOf(snapshotKinds);

/** For a join: every column of a sandbox as `s_…` and of an instance as `i_…`. */
export const joinedColumns = [
  ...sandboxFields.map(({ column }) => `s.${column} AS s_${column}`),
  ...leaseFields.map(({ column }) => `i.${column} AS i_${column}`),
  ...[...reservationColumns, ...evidenceColumns].map((column) => `i.${column} AS i_${column}`),
].join(", ");

export function sandboxColumns(row: Partial<SandboxRow>): Columns {
  return encoded(row, sandboxKinds);
}

export function leaseColumns({ reservation, evidence, ...plain }: Partial<Lease>): Columns {
  return {
    ...encoded(plain, leaseKinds),
    ...(reservation !== undefined && {
      res_memory_b: reservation.memoryBytes,
      res_disk_b: reservation.diskBytes,
    }),
    ...(evidence !== undefined && {
      evidence_kind: evidence?.kind ?? null,
      evidence_at: evidence?.at ?? null,
      evidence_detail: evidence?.detail ?? null,
    }),
  };
}

export function snapshotColumns(row: Partial<SnapshotRow>): Columns {
  return encoded(row, snapshotKinds);
}

export function toSnapshot(columns: Columns): SnapshotRow {
  return decoded(columns, "", snapshotFields) as unknown as SnapshotRow;
}

/** `undefined` if the join found none. */
export function toSandbox(columns: Columns): SandboxRow | undefined {
  if (columns.s_id === null) return undefined;
  return decoded(columns, "s_", sandboxFields) as unknown as SandboxRow;
}

/** `prefix` is `i_` in a join. `undefined` if the join found none. */
export function toLease(columns: Columns, prefix: "i_" | "" = ""): Lease | undefined {
  if (columns[`${prefix}instance_id`] === null) return undefined;
  const plain = decoded(columns, prefix, leaseFields) as unknown as Lease;
  const kind = columns[`${prefix}evidence_kind`] ?? null;
  const lease = {
    ...plain,
    reservation: {
      memoryBytes: Number(columns[`${prefix}res_memory_b`]),
      diskBytes: Number(columns[`${prefix}res_disk_b`]),
    },
    evidence:
      kind === null
        ? null
        : {
            kind: kind as NonNullable<Lease["evidence"]>["kind"],
            at: Number(columns[`${prefix}evidence_at`]),
            detail: String(columns[`${prefix}evidence_detail`]),
          },
  };
  return knownPhases.has(lease.phase) ? lease : failClosed(lease);
}

const knownPhases: ReadonlySet<string> = new Set(phases);

/** As it is read: one that only another version knows counts as quarantined. */
export function phaseOf(text: string): Phase {
  return knownPhases.has(text) ? (text as Phase) : "quarantined";
}

/** Whatever a newer version meant by it, the instance may exist: it blocks, it is watched, and it is never used. */
function failClosed(lease: Lease): Lease {
  const lastError = `this version of Holdfast does not know the phase "${lease.phase}"`;
  return { ...lease, phase: "quarantined", lastError, evidence: null };
}

export function toTombstone(columns: Columns): Tombstone {
  return {
    sandboxId: String(columns.sandbox_id),
    name: String(columns.name),
    generation: Number(columns.generation),
    fence: Number(columns.fence),
    deletedAt: Number(columns.deleted_at),
    cause: typeof columns.cause === "string" ? columns.cause : null,
    keepUntil: Number(columns.keep_until),
  };
}

export function toEntry({ seq, at, sandbox_id, type, cause, actor, detail }: Columns): RecordedEntry {
  return {
    seq: Number(seq),
    at: Number(at),
    sandboxId: String(sandbox_id),
    type: String(type),
    ...(typeof cause === "string" && { cause }),
    ...(typeof actor === "string" && { actor }),
    detail: JSON.parse(String(detail)),
  };
}

interface Field {
  readonly name: string;
  readonly column: string;
  readonly kind: Kind;
}

function fieldsOf(kinds: Kinds): Field[] {
  return Object.entries(kinds).map(([name, kind]) => ({ name, column: snake(name), kind }));
}

/** `lastDeath: {…}` → `last_death: '{"…"}'` */
function encoded(fields: object, kinds: Kinds): Columns {
  const columns: Record<string, Value> = {};
  for (const [name, value] of Object.entries(fields)) {
    const kind = kinds[name];
    if (kind === undefined || value === undefined) {
      throw new HoldfastError("internal", `a row has no field ${name} with the value ${value}`);
    }
    columns[snake(name)] = encodedValue(kind, value);
  }
  return columns;
}

function encodedValue(kind: Kind, value: unknown): Value {
  if (value === null) return null;
  if (kind === "json") return JSON.stringify(value);
  return kind === "flag" ? Number(value) : (value as string | number);
}

function decoded(columns: Columns, prefix: string, fields: readonly Field[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const { name, column, kind } of fields) row[name] = decodedValue(kind, columns[prefix + column]);
  return row;
}

function decodedValue(kind: Kind, value: Value | undefined): unknown {
  if (value === null || value === undefined) return null;
  switch (kind) {
    case "text":
      return value;
    case "integer":
      return Number(value);
    case "flag":
      return Number(value) === 1;
    case "json":
      return JSON.parse(String(value));
    default:
      return kind satisfies never;
  }
}

function snake(name: string): string {
  const found = columnNames.get(name) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  columnNames.set(name, found);
  return found;
}
