import type { EndCause } from "@holdfast/core";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { rememberedActions, type Silence } from "./events.ts";

/** From what a daemon ends when it goes to when we notice that it does. */
const UNNOTICED_MS = 5_000;
/** A `stop` of somebody else may give the container so long. */
const LONGEST_STOP_MS = 60_000;
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
  const actions = await rememberedActions(api, Id, { since: finishedAt - LONGEST_STOP_MS, signal });
  if (actions.includes("kill")) return "killed_outside";
  if (State.ExitCode < SIGNALLED) return "exited";
  return tellsOom ? "killed_outside" : undefined;
}

function isWithin(at: number, { from, to = Number.POSITIVE_INFINITY }: Silence): boolean {
  return at >= from - UNNOTICED_MS && at <= to;
}
