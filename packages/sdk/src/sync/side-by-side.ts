// Each call to the file system goes to another thread and back, which takes far longer than the call. That many keep the
// threads busy; and of each a megabyte may be in memory.
export const SIDE_BY_SIDE = 16;

/**
 * Does the work for all of them, some at a time; what comes of each is in their order. If one fails, no other is begun,
 * and those under way have ended when the failure is thrown.
 */
export async function sideBySide<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const rest = all.entries();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const [at, one] of rest) {
      try {
        results[at] = await work(one);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
