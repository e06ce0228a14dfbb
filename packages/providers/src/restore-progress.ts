import type { LaunchPlan, RestoreProgress } from "@holdfast/core";

const LOOK_EVERY_MS = 250;

/** While the work goes on, whoever launches is told now and then how far the copying is, whoever has begun it. */
export async function tellingOf<T>(
  plan: Pick<LaunchPlan, "onRestore">,
  look: () => RestoreProgress | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setInterval(() => {
    const progress = look();
    if (progress !== undefined) plan.onRestore?.(progress);
  }, LOOK_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
