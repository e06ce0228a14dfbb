import type { Provider } from "@holdfast/core";
import type { DockerApi } from "./api.ts";
import type { Reach } from "./inside.ts";
import { TRIAL_TIMEOUT_MS, tryLaunch } from "./trial.ts";
import { withTrialImage } from "./trial-image.ts";

/** By the API the keeper's bundle is sent first, once for each release: 100 MB, over whatever line. */
const SENDING_TIMEOUT_MS = 300_000;

export interface Decided {
  readonly reach: Reach;
  /** Why not the simpler way. */
  readonly because?: string;
}

/**
 * Launches for real, in the one way and then in the other, and says which one works: there are too many ways in which a
 * daemon may not share our files, or our kernel, to ask for each. Throws why the first did not work if none does.
 */
export async function decideReach(
  api: DockerApi,
  options: {
    now: number;
    as: (reach: Reach) => Provider;
    /** What only an instance there can find out. */
    lookAround: (signal: AbortSignal) => Promise<unknown>;
  },
): Promise<Decided> {
  const { now, as, lookAround } = options;
  const signal = AbortSignal.timeout(TRIAL_TIMEOUT_MS);
  return withTrialImage(api, { now, signal }, async (image) => {
    try {
      await tryLaunch(as("files"), now, { image });
      return { reach: "files" };
    } catch (error) {
      try {
        const slow = { image, timeoutMs: SENDING_TIMEOUT_MS, whileItRuns: lookAround };
        await tryLaunch(as("api"), now, slow);
      } catch {
        throw error;
      }
      return { reach: "api", because: error instanceof Error ? error.message : String(error) };
    }
  });
}
