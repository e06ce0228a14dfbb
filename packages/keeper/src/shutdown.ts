import type { Engine } from "./engine/engine.ts";
import { signalExactly } from "./engine/proc-table.ts";
import { processesOf } from "./engine/sandbox-processes.ts";
import type { Parts } from "./parts.ts";

// Runs record their own ends once their programs are gone; this is for one that cannot be killed.
const RECORD_MS = 1_000;
// A shell that does not answer keeps the checkpoint of its last command.
const CHECKPOINT_MS = 2_000;

/**
 * Ends every run, session and terminal, and whatever else is in the sandbox. The sessions' state is on disk before
 * their shells are touched; each run's end is recorded as it was observed.
 */
export async function endEverything({
  engine,
  parts: { sessions, terminals },
  graceMs,
}: {
  readonly engine: Engine;
  readonly parts: Pick<Parts, "sessions" | "terminals">;
  readonly graceMs: number;
}): Promise<void> {
  await Promise.race([sessions.loaded?.stop(), Bun.sleep(CHECKPOINT_MS)]);
  const runs = [...engine.runs()].map(({ finished }) => finished);
  const ended = Promise.all([...runs, terminals.loaded?.close()]);
  const others = () => processesOf(engine.boot.sandboxId);
  const deadline = performance.now() + graceMs;
  for (const entry of others()) signalExactly(entry, "SIGTERM");
  while (others().length > 0 && performance.now() < deadline) await Bun.sleep(10);
  for (const entry of others()) signalExactly(entry, "SIGKILL");
  await Promise.race([ended, Bun.sleep(RECORD_MS)]);
}
