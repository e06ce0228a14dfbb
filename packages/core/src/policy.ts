import { type CreateSandbox, HoldfastError, type Policy } from "@holdfast/protocol";

/** Long enough for a person to think between two turns, short enough that a forgotten sandbox costs little. */
export const DEFAULT_LIFETIME_SECONDS = 1800;
const DEFAULT_TURN_TIMEOUT_SECONDS = 3600;

/** What was asked for, with the defaults that follow from it. Refuses what contradicts itself. */
export function policyOf(asked: Partial<Pick<CreateSandbox, keyof Policy>>): Policy {
  const persistent = asked.persistent ?? true;
  const filesystem = asked.filesystem ?? (persistent ? "persistent" : "ephemeral");
  const onIdle = asked.onIdle ?? (filesystem === "persistent" && persistent ? "stop" : "remove");
  if (onIdle === "stop" && filesystem === "ephemeral") throw nothingToKeep();
  return {
    persistent,
    filesystem,
    onIdle,
    lifetimeSeconds: asked.lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS,
    maxLifetimeSeconds: asked.maxLifetimeSeconds ?? null,
    turnTimeoutSeconds: asked.turnTimeoutSeconds ?? DEFAULT_TURN_TIMEOUT_SECONDS,
    ...(asked.snapshotOnReap !== undefined && { snapshotOnReap: asked.snapshotOnReap }),
    persistAcrossRestarts: asked.persistAcrossRestarts ?? true,
  };
}

function nothingToKeep(): HoldfastError {
  return new HoldfastError(
    "invalid_argument",
    'onIdle "stop" would keep nothing of an ephemeral filesystem',
    {
      hint: 'ask for filesystem: "persistent", or for onIdle: "remove" or "keep"',
      started: "no",
    },
  );
}
