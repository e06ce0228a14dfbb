/** Waits between attempts to stop an instance or to reach its keeper, in ms; the last one repeats. */
const RETRY_MS = [2_000, 5_000, 15_000, 30_000, 60_000];
/** Waits once those attempts are spent: slower, and for ever. */
const RECHECK_MS = [60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000];
/** Waits between probes of a backend that cannot be reached. */
const PROBE_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];

/** Attempts to stop before an instance is quarantined. */
export const FAST_ATTEMPTS = 6;

/** `random` in [0, 1) spreads each by a fifth either way, so that many rows do not come due at once. */
export function retryMs(attempts: number, random: number): number {
  return spread(at(RETRY_MS, attempts), random);
}

/** `attempts` counts the fast ones, too. */
export function recheckMs(attempts: number, random: number): number {
  return spread(at(RECHECK_MS, attempts - FAST_ATTEMPTS + 1), random);
}

/** Of what is never given up: fast at first, then slowly, for ever. */
export function patientMs(attempts: number, random: number): number {
  return attempts < FAST_ATTEMPTS ? retryMs(attempts, random) : recheckMs(attempts, random);
}

export function probeMs(failures: number, random: number): number {
  return spread(at(PROBE_MS, failures), random);
}

function at(steps: readonly number[], attempts: number): number {
  return steps[Math.min(Math.max(attempts - 1, 0), steps.length - 1)] ?? 60_000;
}

function spread(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random));
}
