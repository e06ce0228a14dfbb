import {
  type Holding,
  type Lease,
  type Pausing,
  type Provider,
  pauseGivenUp,
  tryAgain,
  wasPaused,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { connect, missing } from "./connect.ts";
import { type EffectDeps, isUnreachable, messageOf, providerOf, refOf } from "./effects.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** The kernel freezes a group of processes in milliseconds; a look comes with it. */
const PAUSE_MS = 20_000;

/** Freezes all of it. May be done again: what is paused is paused. */
export async function pause(holding: Holding, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  const { store, hosts, keepers } = deps;
  try {
    await shift.prepare(PAUSE_MS);
    // A keeper that is frozen answers nobody: what waits for it is told now.
    keepers.drop(lease.instanceId);
    const seen = await shift.act({ ms: PAUSE_MS }, (signal) =>
      pausing(providerOf(lease, deps)).pause(refOf(lease), signal),
    );
    await hosts.answered(lease.provider);
    if (seen.state === "absent") return await missing(holding, lease, { seen, shift }, deps);
    if (seen.isPaused !== true) throw new Error(`it runs on: ${seen.detail}`);
    await store.save(holding, wasPaused(lease, seen.detail), shift.ticket);
  } catch (error) {
    if (error instanceof TicketLost) throw error;
    const given = isUnreachable(error) ? undefined : pauseGivenUp(lease, messageOf(error));
    await missed(holding, lease, { error, given, shift }, deps);
  }
}

/** Lets it run on, and reaches its keeper. */
export async function resume(holding: Holding, lease: Lease, shift: Shift, deps: EffectDeps): Promise<void> {
  try {
    await shift.prepare(PAUSE_MS);
    await shift.act({ ms: PAUSE_MS }, (signal) =>
      pausing(providerOf(lease, deps)).resume(refOf(lease), signal),
    );
  } catch (error) {
    if (error instanceof TicketLost) throw error;
    return missed(holding, lease, { error, given: undefined, shift }, deps);
  }
  await connect(holding, lease, shift, deps);
}

async function missed(
  holding: Holding,
  lease: Lease,
  options: { error: unknown; given: ReturnType<typeof pauseGivenUp>; shift: Shift },
  { store, hosts, log, random }: EffectDeps,
): Promise<void> {
  const { error, given, shift } = options;
  const { sandboxId, generation, phase } = lease;
  log.warn("it could not be done", { sandbox: sandboxId, generation, phase, error: messageOf(error) });
  if (isUnreachable(error)) await hosts.missed(lease.provider, error);
  const now = await store.now();
  const attempts = lease.attempts + 1;
  const again = tryAgain(lease, { error: messageOf(error), now, random: random(), attempts });
  await store.save(holding, given ?? again, shift.ticket);
}

/** What can be paused; whoever orders a pause has asked before. */
export function pausing(provider: Provider): Record<"pause" | "resume", Pausing> {
  if (provider.pause !== undefined && provider.resume !== undefined)
    return { pause: provider.pause.bind(provider), resume: provider.resume.bind(provider) };
  const { kind, capabilities } = provider;
  throw new HoldfastError(
    "unsupported",
    `provider ${kind} cannot pause a sandbox: ${capabilities.pauseDetail}`,
    {
      hint: "stop it instead: its files are kept, its processes are not. `holdfast providers` says which can pause",
      started: "no",
    },
  );
}
