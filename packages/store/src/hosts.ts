import type { Host } from "@holdfast/core";
import { type Columns, first, insertInto, type Tx, type Value } from "./driver.ts";

export async function hosts(tx: Tx): Promise<Host[]> {
  return (await tx.all("SELECT * FROM host ORDER BY provider")).map(toHost);
}

export async function saveHost(
  tx: Tx,
  provider: string,
  change: Partial<Omit<Host, "provider">>,
): Promise<Host> {
  const columns = toColumns(change);
  const sets = Object.keys(columns).map((name) => `${name} = excluded.${name}`);
  await insertInto(
    tx,
    "host",
    { failures: 0, ...columns, provider },
    {
      onConflict: `ON CONFLICT (provider) DO ${sets.length === 0 ? "NOTHING" : `UPDATE SET ${sets.join(", ")}`}`,
    },
  );
  const row = await first(tx, "SELECT * FROM host WHERE provider = $1", provider);
  if (row === undefined) throw new Error(`the row of provider ${provider} is not there`);
  return toHost(row);
}

const columnOf = {
  failures: "failures",
  nextProbeAt: "next_probe_at",
  lastError: "last_error",
  lastSeenAt: "last_seen_at",
  closedBecause: "closed_because",
} as const satisfies Record<keyof Omit<Host, "provider">, string>;

function toColumns(change: Partial<Omit<Host, "provider">>): Record<string, Value> {
  const fields = Object.entries(change) as [keyof typeof columnOf, Value][];
  return Object.fromEntries(fields.map(([field, value]) => [columnOf[field], value]));
}

function toHost({
  provider,
  failures,
  next_probe_at,
  last_error,
  last_seen_at,
  closed_because,
}: Columns): Host {
  return {
    provider: String(provider),
    failures: Number(failures),
    nextProbeAt: next_probe_at === null ? null : Number(next_probe_at),
    lastError: last_error as string | null,
    lastSeenAt: last_seen_at === null ? null : Number(last_seen_at),
    closedBecause: closed_because as string | null,
  };
}
