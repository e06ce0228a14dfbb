import type { Host } from "@holdfast/core";
import { insertInto, type Tx } from "./driver.ts";

export async function hosts(tx: Tx): Promise<Host[]> {
  const rows = await tx.all("SELECT * FROM host ORDER BY provider");
  return rows.map(({ provider, failures, next_probe_at, last_error, last_seen_at, closed_because }) => ({
    provider: String(provider),
    failures: Number(failures),
    nextProbeAt: next_probe_at === null ? null : Number(next_probe_at),
    lastError: last_error as string | null,
    lastSeenAt: last_seen_at === null ? null : Number(last_seen_at),
    closedBecause: closed_because as string | null,
  }));
}

export async function saveHost(tx: Tx, host: Host): Promise<void> {
  const columns = {
    provider: host.provider,
    failures: host.failures,
    next_probe_at: host.nextProbeAt,
    last_error: host.lastError,
    last_seen_at: host.lastSeenAt,
    closed_because: host.closedBecause,
  };
  const sets = Object.keys(columns).map((name) => `${name} = excluded.${name}`);
  await insertInto(tx, "host", columns, {
    onConflict: `ON CONFLICT (provider) DO UPDATE SET ${sets.join(", ")}`,
  });
}
