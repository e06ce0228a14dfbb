import {
  evidenceOf,
  type Lease,
  type Ledger,
  type Observation,
  STOP_TIMEOUT_MS,
  stopMissed,
  stopModeOf,
  stopNotSent,
  stopSent,
  unproven,
} from "@holdfast/core";
import { conclude, type EffectDeps, isUnreachable, messageOf, providerOf, refOf } from "./effects.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** One attempt to end an instance; its evidence ends the lease, anything else is tried again later. */
export function stop(before: Ledger, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  return deps.lanes.run(lease.provider, async () => {
    await shift.prepare(STOP_TIMEOUT_MS);
    const ledger = await deps.store.save(before, stopSent(lease, before.readAt), shift.ticket);
    if (ledger === undefined) return;
    deps.keepers.drop(lease.instanceId);
    const sent = find(ledger, lease);
    try {
      const mode = stopModeOf(sent, ledger.sandbox);
      const seen = await shift.act({ ms: STOP_TIMEOUT_MS }, (signal) =>
        providerOf(lease, deps).stop(refOf(lease), mode, signal),
      );
      await deps.hosts.answered(lease.provider);
      await settle(ledger, sent, { seen, shift }, deps);
    } catch (error) {
      if (error instanceof TicketLost) throw error;
      await missed(ledger, sent, { error, shift }, deps);
    }
  });
}

async function settle(
  ledger: Ledger,
  lease: Lease,
  { seen, shift }: { seen: Observation; shift: Shift },
  deps: EffectDeps,
): Promise<void> {
  const { store } = deps;
  if (seen.state === "running") throw new Error(`it is still there: ${seen.detail}`);
  const now = await store.now();
  const evidence = evidenceOf(lease, seen, now);
  if (evidence !== undefined) return conclude(ledger, lease, { evidence, shift }, deps);
  await store.save(ledger, unproven(lease, now), shift.ticket);
}

async function missed(
  ledger: Ledger,
  lease: Lease,
  { error, shift }: { error: unknown; shift: Shift },
  { store, hosts, random, log }: EffectDeps,
): Promise<void> {
  const options = { error: messageOf(error), now: await store.now(), random: random() };
  const { sandboxId, generation, attempts } = lease;
  log.warn("stop did not work", { sandbox: sandboxId, generation, attempts, error: options.error });
  if (isUnreachable(error)) await hosts.missed(lease.provider, error);
  const change = isUnreachable(error) ? stopNotSent(lease, options) : stopMissed(lease, options);
  await store.save(ledger, change, shift.ticket);
}

/** The same lease as it was just written. */
function find(ledger: Ledger, { instanceId }: Lease): Lease {
  const found = [ledger.lease, ...ledger.debts].find((lease) => lease?.instanceId === instanceId);
  if (found === undefined) throw new Error(`lease ${instanceId} is not where it was written`);
  return found;
}
