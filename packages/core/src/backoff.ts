/** Waits between attempts to stop or to reach an instance, in ms; the last one repeats for ever. */
const STEPS_MS = [2_000, 5_000, 15_000, 30_000, 60_000];

/** No wait that is written into a row is longer, with its spread and some room. */
export const LONGEST_WAIT_MS = 120_000;

/** `random` in [0, 1) spreads it by a fifth either way, so that many rows do not come due at once. */
export function backoffMs(attempts: number, random: number): number {
  const step = STEPS_MS[Math.min(Math.max(attempts - 1, 0), STEPS_MS.length - 1)] ?? 60_000;
  return Math.round(step * (0.8 + 0.4 * random));
}
