import type { Engine } from "./engine/engine.ts";
import { signalExactly } from "./engine/proc-table.ts";
import { processesOf } from "./engine/sandbox-processes.ts";
import type { Sessions } from "./session/sessions.ts";
import type { Terminals } from "./terminal/terminals.ts";

// Runs record their own ends once their programs are gone; this is for one that cannot be killed.
const RECORD_MS = 1_000;
// A shell that does not answer keeps the checkpoint of its last command.
const CHECKPOINT_MS = 2_000;

/**
 * Ends every run, session and terminal, and whatever else is in the sandbox. The sessions' state is on disk before
 * their shells are touched; each run's end is recorded as it was observed.
 */
export async function endEverything(parts: {
  readonly engine: Engine;
  readonly sessions: Sessions;
  readonly terminals: Terminals;
  readonly graceMs: number;
}): Promise<void> {
  const { engine, sessions, terminals, graceMs } = parts;
  await Promise.race([sessions.stop(), Bun.sleep(CHECKPOINT_MS)]);
  const ended = Promise.all([...[...engine.runs()].map(({ finished }) => finished), terminals.close()]);
  const others = () => processesOf(engine.boot.sandboxId);
  const deadline = performance.now() + graceMs;
  for (const entry of others()) signalExactly(entry, "SIGTERM");
  while (others().length > 0 && performance.now() < deadline) await Bun.sleep(10);
  for (const entry of others()) signalExactly(entry, "SIGKILL");
  await Promise.race([ended, Bun.sleep(RECORD_MS)]);
}
