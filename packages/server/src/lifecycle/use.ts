import { type Change, type Holding, idleCheckAt, type Store, type Turn } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Asked } from "./refusals.ts";

/** A use is written down at most so often: the keeper knows of each one, and has the last word. */
const COALESCE_MS = 30_000;

/** Writes down that it is used now, and renews the turn of the call. `undefined`: there was nothing new to write. */
export async function withUse(
  first: Holding,
  { turnId }: Pick<Asked, "turnId">,
  store: Store,
): Promise<Holding | undefined> {
  let holding: Holding | undefined = first;
  while (holding !== undefined) {
    const change = changeOf(holding, turnId);
    if (change === undefined) return holding === first ? undefined : holding;
    const saved = await store.save(holding, change);
    if (saved !== undefined) return saved as Holding;
    holding = await store.holding(first.sandboxId);
  }
  return undefined;
}

function changeOf({ sandbox, lease, readAt }: Holding, turnId: string | undefined): Change | undefined {
  const { policy, turns, lastUsedAt } = sandbox;
  const turn = turnId === undefined ? undefined : openTurn(sandbox.name, turns, turnId);
  const isOld = readAt - lastUsedAt >= Math.min(COALESCE_MS, policy.lifetimeSeconds * 100);
  const timeoutMs = policy.turnTimeoutSeconds * 1000;
  const isTurnOld =
    turn !== undefined && readAt + timeoutMs - turn.expiresAt >= Math.min(COALESCE_MS, timeoutMs / 10);
  if (!isOld && !isTurnOld) return undefined;
  const renewed = turns.map((one) => (one === turn ? { ...one, expiresAt: readAt + timeoutMs } : one));
  return {
    sandbox: { lastUsedAt: readAt, turns: renewed },
    ...(lease?.phase === "live" && {
      leases: { [lease.instanceId]: { idleCheckAt: idleCheckAt(policy, readAt) } },
    }),
  };
}

function openTurn(name: string, turns: readonly Turn[], turnId: string): Turn {
  const turn = turns.find((one) => one.turnId === turnId);
  if (turn !== undefined) return turn;
  throw new HoldfastError("wrong_state", `turn ${turnId} of sandbox ${name} is not open`, {
    hint: "begin a new turn; one that no call renews ends by itself",
    started: "no",
  });
}
