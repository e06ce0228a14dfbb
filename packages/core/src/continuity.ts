import type { Continuity } from "@holdfast/protocol";
import type { SandboxRow } from "./lease.ts";
import type { DiskReport } from "./provider.ts";
import type { Change } from "./store.ts";

/** What a sandbox's disk has been through, by generations. */
export interface DiskHistory {
  /** The first generation on the present disk: of what was before it, nothing is left. */
  readonly newSince: number;
  /** The last generation that began without a part of the disk. */
  readonly partlySince: number;
  /** What the last of these two began without, in words. */
  readonly lost: readonly string[];
}

const WHOLE: DiskHistory = { newSince: 0, partlySince: 0, lost: [] };

/** From the least to the most that is left of an earlier instance. */
const order: readonly Continuity[] = ["fresh", "restored", "same-filesystem", "same-process"];

/** Whether `found` is as good as what a caller accepts, or better. */
export function isAtLeast(found: Continuity, accepted: Continuity): boolean {
  return order.indexOf(found) >= order.indexOf(accepted);
}

/** How generation `present` relates to what the caller remembers, or without that to the generation before it. */
export function continuityOf(
  { policy, spec, diskHistory }: Pick<SandboxRow, "policy" | "spec" | "diskHistory">,
  present: number,
  remembered?: number,
): Continuity {
  if (remembered === present) return "same-process";
  const { newSince, partlySince } = diskHistory ?? WHOLE;
  const before = remembered ?? present - 1;
  const isFirst = present <= 1 || policy.filesystem === "ephemeral";
  if (isFirst) return spec.fromSnapshot === undefined ? "fresh" : "restored";
  if (before < newSince) return "fresh";
  return before < partlySince ? "restored" : "same-filesystem";
}

/** What generation `present` has lost of what the caller remembers; nothing, if its disk is whole. */
export function lossesOf(
  sandbox: Pick<SandboxRow, "policy" | "spec" | "diskHistory">,
  present: number,
  remembered?: number,
): readonly string[] {
  const continuity = continuityOf(sandbox, present, remembered);
  const isLoss = continuity === "restored" || (continuity === "fresh" && present > 1);
  return isLoss ? (sandbox.diskHistory?.lost ?? []) : [];
}

/** Of a sandbox that begins with a snapshot: what its first instance has not of what the snapshot was taken of. */
export function beginsWithout(lost: readonly string[]): DiskHistory | null {
  return lost.length === 0 ? null : { ...WHOLE, lost };
}

/** What a launch found of the disk, as it is written down. Who never lived has lost nothing. */
export function diskFound(
  { lastDeath, policy, diskHistory }: SandboxRow,
  generation: number,
  found: DiskReport | undefined,
): Pick<Change, "sandbox" | "entries"> {
  const isWhole = found === undefined || found.state === "kept";
  if (isWhole || lastDeath === null || policy.filesystem === "ephemeral") return {};
  const lost = found.state === "new" ? ["the whole disk"] : found.lost;
  const since = found.state === "new" ? { newSince: generation } : { partlySince: generation };
  const continuity = found.state === "new" ? "fresh" : "restored";
  return {
    sandbox: { diskHistory: { ...(diskHistory ?? WHOLE), ...since, lost } },
    entries: [{ type: "disk_lost", cause: "removed_outside", detail: { generation, continuity, lost } }],
  };
}
