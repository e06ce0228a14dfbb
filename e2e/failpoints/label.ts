import type { Change, SnapshotRow } from "../../packages/core/src/index.ts";

/**
 * A call by what it is about, so that the same moment of a life has the same label in every run. `undefined`: how often
 * it comes depends on the machine.
 */
export function labelOf(name: string, args: readonly unknown[]): string | undefined {
  if (name === "store.saveSnapshot") {
    const { phase } = args[1] as Partial<SnapshotRow>;
    return phase && `${name}(${phase})`;
  }
  if (name !== "store.save") return name;
  const { sandbox, leases, found, entries } = args[1] as Change;
  const facts = [
    ...Object.values(leases ?? {}).map(({ phase }) => phase ?? "lease"),
    ...(found === undefined ? [] : ["found"]),
    ...(sandbox?.desired === undefined ? [] : [`want ${sandbox.desired}`]),
    ...(sandbox?.turns === undefined ? [] : ["turns"]),
    ...(sandbox?.hasDisk === undefined ? [] : ["disk"]),
    ...(entries ?? []).map(({ type }) => type),
  ];
  return `${name}(${[...new Set(facts)].join(" ") || "use"})`;
}
