import type { Change } from "../../packages/core/src/index.ts";

/** A call by what it is about, so that the same moment of a life has the same label in every run. */
export function labelOf(name: string, args: readonly unknown[]): string {
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
