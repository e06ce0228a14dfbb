import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * How often the kernel has killed something in this sandbox for lack of memory, or `undefined` if it cannot be known.
 * Compared before and after a run that died of a SIGKILL which was not ours.
 */
export function oomKills(memoryCgroupDir: string | undefined): number | undefined {
  if (memoryCgroupDir === undefined) return undefined;
  // memory.events in cgroup v2, memory.oom_control in v1; both have a line "oom_kill N".
  for (const file of ["memory.events", "memory.oom_control"]) {
    const match = /^oom_kill (\d+)$/m.exec(readIfThere(join(memoryCgroupDir, file)));
    if (match !== null) return Number(match[1]);
  }
  return undefined;
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
