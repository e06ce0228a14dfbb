import type { EndCause } from "@holdfast/core";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { rememberedActions, type Silence } from "./events.ts";

/** From what a daemon ends when it goes to when we notice that it does. */
const UNNOTICED_MS = 5_000;
/** A `stop` of somebody else may give the container so long. */
const LONGEST_STOP_MS = 60_000;
/** A kill may be written down after the end that it caused: a daemon is waited for only if it tells of none at once. */
const WRITTEN_DOWN_MS = [10, 1_000];
/** A process that was ended by a signal has 128 and its number. */
const SIGNALLED = 128;

/**
 * Why a container that we did not end has ended, by the daemon's account. Never by what was written in it. `undefined`:
 * something killed it, and this daemon would not have told if that was the kernel, for want of memory.
 */
export async function causeOfEnd(
  { Id, State }: Container,
  options: { api: DockerApi; silence: Silence | undefined; tellsOom: boolean; signal: AbortSignal },
): Promise<EndCause | undefined> {
  if (State.OOMKilled && State.ExitCode === SIGNALLED + 9) return "oom";
  const finishedAt = Date.parse(State.FinishedAt);
  const { api, silence, tellsOom, signal } = options;
  // Before the next question: a daemon that comes back ends by itself what it finds running.
  if (silence !== undefined && isWithin(finishedAt, silence)) return "daemon_restarted";
  const isSignalled = State.ExitCode >= SIGNALLED;
  if (isSignalled && tellsOom) return "killed_outside";
  for (const afterMs of WRITTEN_DOWN_MS) {
    const span = { since: finishedAt - LONGEST_STOP_MS, until: finishedAt + afterMs };
    const actions = await rememberedActions(api, Id, { ...span, signal });
    if (actions.includes("kill")) return "killed_outside";
  }
  return isSignalled ? undefined : "exited";
}

function isWithin(at: number, { from, to = Number.POSITIVE_INFINITY }: Silence): boolean {
  return at >= from - UNNOTICED_MS && at <= to;
}
