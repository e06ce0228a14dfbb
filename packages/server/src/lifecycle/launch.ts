import {
  launchFailed as failedForGood,
  fetched,
  fetching,
  type Holding,
  type Lease,
  launched,
  launchSent,
  type RestoreProgress,
  tryAgain,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type EffectDeps, isUnreachable, messageOf, providerOf, refOf } from "./effects.ts";
import { RestoreReport } from "./restore-report.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** One call. What takes longer, a large image for instance, goes on in the backend and is accepted by the next call. */
const LAUNCH_CALL_MS = 40_000;
/** A question, and a moment for what is nearly there. */
const PREPARE_CALL_MS = 20_000;

/**
 * Asks the provider for the instance, once it has what that needs. That it was asked is on the disk before the provider
 * hears of it.
 */
export async function launch(before: Holding, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  if (await isPrepared({ ...before, lease }, shift, deps)) await send(before, lease, shift, deps);
}

function send(before: Holding, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  return deps.lanes.run(lease.provider, async () => {
    const { store, hosts } = deps;
    await shift.prepare(LAUNCH_CALL_MS);
    const provider = providerOf(lease, deps);
    const { settleMs } = provider.capabilities;
    // Of this moment: the rows were read before it waited for its turn, and a late create counts from the call.
    const sent = launchSent(lease, { now: await store.now(), callMs: LAUNCH_CALL_MS, settleMs });
    const begun = await store.save(before, sent, shift.ticket);
    if (begun?.lease === undefined) return;
    const report = new RestoreReport(begun as Holding & { lease: Lease }, shift, deps);
    try {
      await ask(before, lease, shift, { ...deps, report });
      await hosts.answered(lease.provider);
      const holding = await report.end();
      await store.save(holding, launched(holding.lease, { callMs: LAUNCH_CALL_MS }), shift.ticket);
    } catch (error) {
      const holding = await report.end();
      if (deps.closing.aborted || error instanceof TicketLost) throw error;
      await missed(holding, error, shift, deps);
    }
  });
}

/** Otherwise how far it is was written down, or why it cannot be, and what is next is decided from that. */
async function isPrepared(
  holding: Holding & { lease: Lease },
  shift: Shift,
  deps: EffectDeps,
): Promise<boolean> {
  const { store, closing } = deps;
  const { lease, sandbox } = holding;
  const provider = providerOf(lease, deps);
  if (provider.prepare === undefined) return true;
  try {
    await shift.prepare(PREPARE_CALL_MS);
    const call = { ms: PREPARE_CALL_MS, closing };
    const seen = await shift.act(call, async (signal) => provider.prepare?.(sandbox.spec, signal));
    const isReady = seen === undefined || seen.state === "ready";
    const { phase, nextAttemptAt, lastError } = lease;
    const wasFetching = phase === "reserved" && nextAttemptAt !== null && lastError === null;
    if (isReady && !wasFetching) return true;
    const now = await store.now();
    const change = isReady ? fetched(lease, now) : fetching(lease, { detail: seen.detail, now });
    await store.save(holding, change, shift.ticket);
  } catch (error) {
    if (closing.aborted || error instanceof TicketLost) throw error;
    await missed(holding, error, shift, deps);
  }
  return false;
}

function ask(
  { sandbox }: Holding,
  lease: Lease,
  shift: Shift,
  deps: EffectDeps & { report: RestoreReport },
): Promise<void> {
  const { spec, name, policy, restoresFrom } = sandbox;
  const { secret, fence } = lease;
  const plan = {
    ...{ spec, hostname: name, secret, fence, lifetimeSeconds: policy.lifetimeSeconds },
    ...(restoresFrom !== null && {
      fromSnapshot: restoresFrom,
      onRestore: (progress: RestoreProgress) => deps.report.tell(progress),
    }),
  };
  return shift.act({ ms: LAUNCH_CALL_MS, closing: deps.closing }, (signal) =>
    providerOf(lease, deps).launch(refOf(lease), plan, signal),
  );
}

async function missed(
  holding: Holding & { lease: Lease },
  error: unknown,
  shift: Shift,
  deps: EffectDeps,
): Promise<void> {
  const { store, hosts, random, log } = deps;
  const { lease } = holding;
  const now = await store.now();
  const message = messageOf(error);
  log.warn("launch did not work", { sandbox: lease.sandboxId, generation: lease.generation, error: message });
  if (isUnreachable(error)) await hosts.missed(lease.provider, error);
  if (error instanceof HoldfastError && error.code === "host_storage_unusable")
    await hosts.close(lease.provider, error);
  const change = isOpen(error)
    ? tryAgain(lease, { error: message, now, random: random(), attempts: lease.attempts })
    : failedForGood(lease, { error: message, now, callMs: LAUNCH_CALL_MS });
  await store.save(holding, change, shift.ticket);
}

/** Nobody knows whether it was done, or it was not even heard: the same call again accepts what the first one made. */
function isOpen(error: unknown): boolean {
  return (
    error instanceof HoldfastError && (error.code === "unavailable" || error.code === "provider_unavailable")
  );
}
