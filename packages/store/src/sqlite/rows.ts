import type { Lease, Phase, RecordedEntry, SandboxRow, Tombstone } from "@holdfast/core";

/** A row as SQLite gives and takes it. */
export type Columns = Record<string, string | number | null>;

/** Columns that hold JSON text. */
const structured = new Set(["spec", "labels", "lastDeath", "limits", "evidence"]);

/** `lastDeath: {…}` → `last_death: '{"…"}'` */
export function toColumns(fields: Record<string, unknown>): Columns {
  const columns: Columns = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    columns[snake(name)] = structured.has(name) && value !== null ? JSON.stringify(value) : (value as string);
  }
  return columns;
}

export function toSandbox(columns: Columns): SandboxRow {
  const { seq: _seq, idempotency_key: _key, ...rest } = columns;
  return fromColumns(rest) as unknown as SandboxRow;
}

export function toLease(columns: Columns): Lease {
  return fromColumns(columns) as unknown as Lease & { phase: Phase };
}

export function toTombstone(columns: Columns): Tombstone {
  return fromColumns(columns) as unknown as Tombstone;
}

export function toEntry(columns: Columns): RecordedEntry {
  const { seq, at, type, cause, detail } = columns;
  return {
    seq: Number(seq),
    at: Number(at),
    type: String(type),
    ...(cause !== null && cause !== undefined && { cause: String(cause) }),
    detail: JSON.parse(String(detail)),
  };
}

function fromColumns(columns: Columns): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(columns).map(([column, value]) => {
      const name = camel(column);
      return [name, structured.has(name) && value !== null ? JSON.parse(String(value)) : value];
    }),
  );
}

const snake = remembered((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
const camel = remembered((column) =>
  column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
);

/** There are a few dozen names, and every call of the API converts most of them. */
function remembered(convert: (name: string) => string): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name) ?? convert(name);
    known.set(name, found);
    return found;
  };
}
