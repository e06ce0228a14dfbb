import { hasEnvironmentEntry, listProcesses, type ProcessEntry } from "./proc-table.ts";

/** All but ourselves. As PID 1 everything else is the sandbox's; elsewhere (in tests) only what carries its id. */
export function processesOf(sandboxId: string): ProcessEntry[] {
  if (process.pid === 1) return listProcesses().filter(({ pid }) => pid !== 1);
  return listProcesses().filter(({ pid }) => hasEnvironmentEntry(pid, `HOLDFAST_SANDBOX_ID=${sandboxId}`));
}
