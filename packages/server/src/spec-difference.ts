import type { SandboxSpec } from "@holdfast/protocol";

/** What a spec has against what is wanted, key by key; an absent key means the default, on either side. */
export function differences(
  has: SandboxSpec,
  wanted: SandboxSpec,
): Record<string, { has: unknown; wanted: unknown }> {
  const difference: Record<string, { has: unknown; wanted: unknown }> = {};
  for (const key of new Set([...Object.keys(has), ...Object.keys(wanted)]) as Set<keyof SandboxSpec>) {
    if (!Bun.deepEquals(has[key], wanted[key])) {
      difference[key] = { has: has[key] ?? null, wanted: wanted[key] ?? null };
    }
  }
  return difference;
}
