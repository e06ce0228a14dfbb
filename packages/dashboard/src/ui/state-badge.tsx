import type { SandboxInfo } from "holdfast";

/** A word and a dot: the colour alone says nothing. */
export function StateBadge({ state }: { state: SandboxInfo["state"] }) {
  return <span className={`state ${state}`}>{state}</span>;
}
