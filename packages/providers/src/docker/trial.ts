import { randomUUID } from "node:crypto";
import type { LaunchPlan, Provider } from "@holdfast/core";

/** A whole launch takes about a second. */
export const TRIAL_TIMEOUT_MS = 20_000;
/** Of a server that was killed in the middle. A younger one may be another server's, which is just trying. */
const ABANDONED_MS = 3 * TRIAL_TIMEOUT_MS;
/** No installation is called so, so that no server takes a trial for its own: the next trial removes what one left. */
const TRIAL_INSTALLATION = "holdfast-probe";

interface TrialOptions {
  readonly image?: string;
  readonly timeoutMs?: number;
  readonly whileItRuns?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
}

/** Launches an instance, for real, and removes it. Throws what went wrong. */
export async function tryLaunch(
  provider: Provider,
  now: number,
  { image, timeoutMs = TRIAL_TIMEOUT_MS, whileItRuns }: TrialOptions = {},
): Promise<void> {
  const signal = AbortSignal.timeout(timeoutMs);
  await removeAbandoned(provider, now, signal);
  const sandboxId = `probe-${randomUUID().slice(0, 8)}`;
  const ref = { installationId: TRIAL_INSTALLATION, sandboxId, instanceId: randomUUID(), generation: 1 };
  try {
    await provider.launch(ref, trialPlan(image), signal);
    await whileItRuns?.(signal);
  } finally {
    const undo = AbortSignal.timeout(TRIAL_TIMEOUT_MS);
    await provider.stop(ref, "force", undo);
    await provider.removeDisk(ref, undo);
  }
}

function trialPlan(image: string | undefined): LaunchPlan {
  const secret = randomUUID();
  const spec = { network: "none", ...(image !== undefined && { image }) } as const;
  return { spec, hostname: "probe", secret, lifetimeSeconds: 60, fence: 1 };
}

/** What a trial left that was killed in the middle. */
export async function removeAbandoned(provider: Provider, now: number, signal: AbortSignal): Promise<void> {
  const found = (await provider.discover(signal)).filter(
    ({ ref, createdAt }) =>
      ref.installationId === TRIAL_INSTALLATION && createdAt !== null && createdAt < now - ABANDONED_MS,
  );
  for (const one of found) if (one.kind === "instance") await provider.stop(one.ref, "force", signal);
  for (const one of found) if (one.kind === "disk") await provider.removeDisk(one.ref, signal);
}
