import type { Holding, Lease } from "./lease.ts";
import type { Change } from "./store.ts";

// What pausing changes in the rows. A paused instance has all its processes, and none of them runs: nobody can ask its
// keeper anything, so its rows alone say when it is idle.

/** A pause that failed so often is given up: the instance runs on. */
const PAUSE_ATTEMPTS = 3;

export function pauseOrdered(lease: Lease): Change {
  const again = { attempts: 0, nextAttemptAt: null, lastError: null };
  return {
    leases: { [lease.instanceId]: { phase: "pausing", ...again } },
    entries: [{ type: "pausing", detail: { generation: lease.generation } }],
  };
}

/** It was seen to be paused. */
export function wasPaused(lease: Lease, detail: string): Change {
  const rested = { attempts: 0, nextAttemptAt: null, lastError: null, missingSince: null };
  const cause = lease.phase === "pausing" ? "pause_requested" : "paused_outside";
  return {
    leases: { [lease.instanceId]: { phase: "paused", ...rested } },
    entries: [{ type: "paused", cause, detail: { generation: lease.generation, instance: detail } }],
  };
}

/** `undefined`: it is tried again. */
export function pauseGivenUp(lease: Lease, error: string): Change | undefined {
  if (lease.attempts + 1 < PAUSE_ATTEMPTS) return undefined;
  const asBefore = { attempts: 0, nextAttemptAt: null, lastError: error };
  return {
    leases: { [lease.instanceId]: { phase: "live", ...asBefore } },
    entries: [{ type: "pause_failed", cause: "pause_failed", detail: { error } }],
  };
}

/** Somebody needs it. Counts as use. */
export function resumeOrdered({ readAt }: Holding, lease: Lease): Change {
  const again = { attempts: 0, nextAttemptAt: null, lastError: null };
  return {
    sandbox: { lastUsedAt: readAt },
    leases: { [lease.instanceId]: { phase: "resuming", ...again } },
  };
}
