import { type Census, MAX_LAUNCH_FAILURES, NOBODY, type SandboxRow, stateOf } from "@holdfast/core";
import type { SnapshotState } from "@holdfast/protocol";
import type { Columns, Tx } from "./driver.ts";
import { phaseOf } from "./rows.ts";

const FAILED = `CASE WHEN s.launch_failures >= ${MAX_LAUNCH_FAILURES} THEN ${MAX_LAUNCH_FAILURES} ELSE 0 END`;

const SPARE = `CASE WHEN s.tenant_id = '${NOBODY}' THEN 1 ELSE 0 END`;

/** Three counts of what is there. What is gone, of which there is more with time, is not looked at. */
export async function census(tx: Tx): Promise<Census> {
  const rows = await tx.all(
    `SELECT s.provider, s.desired, i.phase, ${FAILED} AS launch_failures, ${SPARE} AS spare, count(*) AS n
     FROM sandbox s LEFT JOIN instance i ON i.sandbox_id = s.id AND i.phase NOT IN ('gone', 'debt')
     GROUP BY 1, 2, 3, 4, 5`,
  );
  const counted = (spare: number) =>
    rows
      .filter((row) => Number(row.spare) === spare)
      .map((row) => ({ ...groupOf(row), state: stateIn(row) }));
  const leases = await tx.all(
    `SELECT provider, phase, count(*) AS n, sum(res_memory_b) AS memory_b, sum(res_disk_b) AS disk_b
     FROM instance WHERE phase <> 'gone' GROUP BY 1, 2`,
  );
  const snapshots = await tx.all("SELECT provider, phase, count(*) AS n FROM snapshot GROUP BY 1, 2");
  return {
    sandboxes: counted(0),
    spares: counted(1),
    leases: leases.map((row) => ({
      ...groupOf(row),
      phase: phaseOf(String(row.phase)),
      memoryBytes: Number(row.memory_b),
      diskBytes: Number(row.disk_b),
    })),
    snapshots: snapshots.map((row) => ({ ...groupOf(row), state: row.phase as SnapshotState })),
  };
}

function groupOf({ provider, n }: Columns): { provider: string; count: number } {
  return { provider: String(provider), count: Number(n) };
}

function stateIn({ desired, phase, launch_failures }: Columns): Census["sandboxes"][number]["state"] {
  return stateOf({
    sandbox: { desired: desired as SandboxRow["desired"], launchFailures: Number(launch_failures) },
    lease: phase === null ? undefined : { phase: phaseOf(String(phase)) },
  });
}
