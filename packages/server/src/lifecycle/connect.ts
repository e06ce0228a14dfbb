import {
  cameAlive,
  type Holding,
  isMissing,
  isSpare,
  type KeeperControl,
  type Lease,
  lookAgain,
  type Observation,
  tryAgain,
  wasGivenAway,
  wasPaused,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { admissionOf } from "./admission.ts";
import { sayClaim } from "./claim-desk.ts";
import { type EffectDeps, isUnreachable, messageOf, orderStop, providerOf, refOf } from "./effects.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** One look and one handshake. */
const CONNECT_MS = 20_000;
/** A keeper ends by itself at its greatest age, which it counts from a moment earlier than the rows do. */
const OWN_END_MARGIN_MS = 5_000;

/** Looks for the instance, reaches its keeper, and opens its gate if the rows still say so. */
export async function connect(holding: Holding, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  const { store, hosts, log, random } = deps;
  try {
    await shift.prepare(CONNECT_MS);
    const seen = await shift.act({ ms: CONNECT_MS }, (signal) =>
      providerOf(lease, deps).observe(refOf(lease), signal),
    );
    await hosts.answered(lease.provider);
    if (seen.state === "absent") return await missing(holding, lease, { seen, shift }, deps);
    if (seen.isPaused && (lease.phase === "live" || lease.phase === "paused"))
      return await rests(holding, lease, { seen, shift }, deps);
    await shift.act({ ms: CONNECT_MS }, () => reach(holding, lease, seen, deps));
    const alive = cameAlive({ ...holding, lease }, seen, await store.now());
    const saved = await store.save(holding, alive, shift.ticket);
    // It may have been given away meanwhile: its keeper must be told again whose it is.
    if (saved === undefined && isSpare(holding.sandbox)) deps.keepers.drop(lease.instanceId);
  } catch (error) {
    if (error instanceof TicketLost) throw error;
    if (isUnreachable(error)) await hosts.missed(lease.provider, error);
    const { sandboxId, generation } = lease;
    log.warn("keeper not reached", { sandbox: sandboxId, generation, error: messageOf(error) });
    const options = {
      error: messageOf(error),
      now: await store.now(),
      random: random(),
      attempts: lease.attempts + 1,
    };
    await store.save(holding, tryAgain(lease, options), shift.ticket);
  }
}

/** Nobody answers there before it is resumed. Who paused it does not matter. */
async function rests(
  holding: Holding,
  lease: Lease,
  { seen, shift }: { seen: Extract<Observation, { state: "running" }>; shift: Shift },
  { store, keepers }: EffectDeps,
): Promise<void> {
  keepers.rest(lease.instanceId);
  const isKnown = lease.phase === "paused" && lease.nextAttemptAt === null;
  if (!isKnown) await store.save(holding, wasPaused(lease, seen.detail), shift.ticket);
}

/** It died by itself: what it left behind is cleared away by a stop, whose evidence then ends the lease. */
export async function missing(
  holding: Holding,
  lease: Lease,
  { seen, shift }: { seen: Extract<Observation, { state: "absent" }>; shift: Shift },
  deps: EffectDeps,
): Promise<void> {
  const now = await deps.store.now();
  if (isMissing(lease, seen, now))
    return orderStop(holding, lease, { because: causeOfLoss(lease, seen, now), shift }, deps);
  await deps.store.save(holding, lookAgain(lease, now), shift.ticket);
}

/** Why one that was not told to end is not there any more. */
function causeOfLoss(
  { hardStopAt }: Lease,
  { cause }: Extract<Observation, { state: "absent" }>,
  now: number,
): string {
  const isItsEnd = hardStopAt !== null && now >= hardStopAt - OWN_END_MARGIN_MS;
  if (isItsEnd && (cause ?? "exited") === "exited") return "max_lifetime";
  return cause ?? "keeper_lost";
}

function reach(
  holding: Holding,
  lease: Lease,
  seen: Extract<Observation, { state: "running" }>,
  deps: EffectDeps,
): Promise<void> {
  const { instanceId, secret, fence, sandboxId } = lease;
  return deps.keepers.connect({
    instanceId,
    address: seen.keeper,
    secret,
    fence,
    admit: (link) => admit(link, holding, lease, deps),
    now: deps.clock.now(),
    onEnd: () => deps.kick(sandboxId),
  });
}

async function admit(link: KeeperControl, holding: Holding, lease: Lease, deps: EffectDeps): Promise<void> {
  const { instanceId } = lease;
  const info = await link.info();
  if (info.instanceId !== instanceId) throw new Error(`another instance answered: ${info.instanceId}`);
  await assertStillWanted(holding, deps);
  await assertClaimsKnown(holding, info.claimFence ?? 0, deps);
  if (isSpare(holding.sandbox) && info.isOwned === true) await assertNobodys(holding, lease, deps);
  await link.admit(admissionOf(holding.sandbox, lease, deps));
  await sayClaim(link, holding.sandbox);
}

/** The gate: the rows are read again, and only if they still say so may the keeper run anything. */
async function assertStillWanted({ sandboxId, version }: Holding, { store }: EffectDeps): Promise<void> {
  const now = await store.holding(sandboxId);
  if (now?.version === version && now.sandbox.desired === "active") return;
  throw new HoldfastError("fence_stale", "the lease moved on before its keeper was admitted");
}

/**
 * Rows that were restored, or made anew for a disk, may have forgotten claims that the keeper remembers: it would refuse
 * every later number that is lower. The rows go on from there, and the next attempt finds them so.
 */
async function assertClaimsKnown(holding: Holding, seen: number, { store }: EffectDeps): Promise<void> {
  if (seen <= holding.sandbox.claimFence) return;
  const claimFence = seen + 1;
  const entries = [{ type: "claim_fence_raised", cause: "restored_rows", detail: { claimFence } }];
  await store.save(holding, { sandbox: { claimFence }, entries });
  throw new HoldfastError("fence_stale", "the rows had forgotten claims that its keeper knows of");
}

/** Rows that were restored may have forgotten whose it is. They learn it here, and the next attempt finds them so. */
async function assertNobodys(holding: Holding, lease: Lease, { store }: EffectDeps): Promise<never> {
  await store.save(holding, wasGivenAway({ ...holding, lease }));
  throw new HoldfastError("fence_stale", "the rows had forgotten that this one was given away");
}
