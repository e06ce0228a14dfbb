/** What a spec has against what is wanted, key by key; an absent key means the default, on either side. */
export function differences(
  has: Record<string, unknown>,
  wanted: Record<string, unknown>,
): Record<string, { has: unknown; wanted: unknown }> {
  const difference: Record<string, { has: unknown; wanted: unknown }> = {};
  for (const key of new Set([...Object.keys(has), ...Object.keys(wanted)])) {
    if (!Bun.deepEquals(has[key], wanted[key])) {
      difference[key] = { has: has[key] ?? null, wanted: wanted[key] ?? null };
    }
  }
  return difference;
}
