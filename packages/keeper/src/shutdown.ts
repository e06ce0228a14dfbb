import type { Engine } from "./engine/engine.ts";
import { hasEnvironmentEntry, listProcesses, type ProcessEntry, signalExactly } from "./engine/proc-table.ts";

// Runs record their own ends once their programs are gone; this is for one that cannot be killed.
const RECORD_MS = 1_000;

/** Ends every run and whatever else is in the sandbox. Each run's end is recorded as it was observed. */
export async function endEverything(engine: Engine, options: { graceMs: number }): Promise<void> {
  const ended = Promise.all([...engine.runs()].map(({ finished }) => finished));
  const others = () => processesOf(engine.boot.sandboxId);
  const deadline = performance.now() + options.graceMs;
  for (const entry of others()) signalExactly(entry, "SIGTERM");
  while (others().length > 0 && performance.now() < deadline) await Bun.sleep(10);
  for (const entry of others()) signalExactly(entry, "SIGKILL");
  await Promise.race([ended, Bun.sleep(RECORD_MS)]);
}

/** As PID 1 everything but ourselves is the sandbox's; elsewhere (in tests) only what carries its id. */
function processesOf(sandboxId: string): ProcessEntry[] {
  if (process.pid === 1) return listProcesses().filter(({ pid }) => pid !== 1);
  return listProcesses().filter(({ pid }) => hasEnvironmentEntry(pid, `HOLDFAST_SANDBOX_ID=${sandboxId}`));
}
