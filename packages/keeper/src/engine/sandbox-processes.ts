import { describe, hasEnvironmentEntry, listProcesses, type ProcessEntry } from "./proc-table.ts";

/** All but ourselves. As PID 1 everything else is the sandbox's; elsewhere (in tests) only what carries its id. */
export function processesOf(sandboxId: string): ProcessEntry[] {
  if (process.pid === 1) return listProcesses().filter((entry) => entry.pid !== 1 && !isRelay(entry));
  return listProcesses().filter(({ pid }) => hasEnvironmentEntry(pid, `HOLDFAST_SANDBOX_ID=${sandboxId}`));
}

/** The server's own way to us. Only a container's engine starts what has no parent here: no work can look like that. */
function isRelay(entry: ProcessEntry): boolean {
  return entry.parent === 0 && / relay [\w-]+$/.test(describe(entry));
}
