import {
  type Holding,
  type KeeperControl,
  type Lease,
  notIdleUntil,
  type QuiesceAnswer,
  stopOrdered,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type EffectDeps, messageOf } from "./effects.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** The keeper answers in a millisecond, or not at all. */
const QUIESCE_MS = 10_000;
/** A busy one is asked again when it could be idle at the earliest, but not in a tight loop. */
const SHORTEST_RECHECK_MS = 1_000;
/** One that did not answer is asked again after this. */
const NO_ANSWER_MS = 30_000;

/**
 * By the rows nobody has used it for its lifetime. The keeper has the last word: it knows what is in flight and what
 * works inside, and by its own clock. Only when it has promised to take no more work is the instance stopped, and only
 * if the rows have not changed since they were read.
 */
export async function judgeIdle(
  holding: Holding,
  lease: Lease,
  shift: Shift,
  deps: EffectDeps,
): Promise<void> {
  const { store, keepers } = deps;
  const { policy } = holding.sandbox;
  const notBefore = notIdleUntil(holding, holding.readAt);
  if (notBefore !== undefined) return askAgain(holding, lease, { at: notBefore, shift }, deps);
  if (lease.phase === "paused") {
    // Nothing works in it, and nobody used it: there is no keeper to ask.
    await store.save(holding, stopOrdered(holding, lease, "idle", holding.readAt), shift.ticket);
    return;
  }
  const link = keepers.link(lease.instanceId);
  if (link === undefined) return;
  const lifetimeMs = policy.lifetimeSeconds * 1000;
  const answer = await quiesce(link, lifetimeMs, { lease, shift, deps });
  if (answer.state === "busy") {
    const left = Math.ceil(lifetimeMs - answer.idleForMs);
    const at = (await store.now()) + Math.max(left, SHORTEST_RECHECK_MS);
    return askAgain(holding, lease, { at, shift }, deps);
  }
  const ordered = stopOrdered(holding, lease, "idle", await store.now());
  const saved = await store.save(holding, ordered, shift.ticket);
  // Somebody used it in between: it goes on as if nothing had been asked.
  if (saved === undefined) await link.resume();
}

/** Without an answer it is not idle but out of reach, and asked again when it could be idle next. */
async function quiesce(
  link: KeeperControl,
  lifetimeMs: number,
  { lease, shift, deps }: { lease: Lease; shift: Shift; deps: EffectDeps },
): Promise<QuiesceAnswer> {
  try {
    await shift.prepare(QUIESCE_MS);
    return await shift.act({ ms: QUIESCE_MS }, () => link.quiesce({ lifetimeMs }));
  } catch (error) {
    if (error instanceof TicketLost) throw error;
    deps.log.warn("idleness could not be judged", { sandbox: lease.sandboxId, error: messageOf(error) });
    // To reach it anew would not make it younger: nobody knows whether it is used, so it goes on.
    if (isTooOld(error)) return { state: "busy", because: [messageOf(error)], idleForMs: 0 };
    deps.keepers.drop(lease.instanceId);
    return { state: "busy", because: [messageOf(error)], idleForMs: Math.max(lifetimeMs - NO_ANSWER_MS, 0) };
  }
}

/** A keeper of an earlier release, which knows of no idleness. */
function isTooOld(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "unsupported";
}

async function askAgain(
  holding: Holding,
  lease: Lease,
  { at, shift }: { at: number; shift: Shift },
  { store }: EffectDeps,
): Promise<void> {
  const idleCheckAt = Math.max(at, holding.readAt + SHORTEST_RECHECK_MS);
  await store.save(holding, { leases: { [lease.instanceId]: { idleCheckAt } } }, shift.ticket);
}
