import { isSpare } from "@holdfast/core";
import type { AdmitRequest } from "@holdfast/protocol";
import type { Commit } from "../book.ts";
import type { Universe } from "../universe.ts";
import type { SimKeeper } from "../world/keeper.ts";
import type { Scene } from "./scene.ts";

/** A spare is given away once, and nobody has used it before; what was somebody's is never a spare again. */
export function givenOnce({ op, before, after, sandboxId }: Commit, scene: Scene): void {
  const { judge, history, coverage } = scene;
  if (after.sandbox === undefined) return;
  if (isSpare(after.sandbox)) {
    const wasSomebodys = history.owned.has(sandboxId) && !history.wentBack;
    judge.demand(!wasSomebodys, "spare", () => `${sandboxId} was somebody's, and is a spare again`);
    return;
  }
  history.owned.add(sandboxId);
  if (op !== "give") return;
  coverage.sometimes("a spare is given away");
  const wasSpare = before?.sandbox !== undefined && isSpare(before.sandbox);
  judge.demand(wasSpare, "spare", () => `${sandboxId} is given away, and is no spare`);
  judge.demand(usedBy(sandboxId, scene) === 0, "spare", () => `${sandboxId} is given away, and was used`);
}

/** Nobody works in a spare. */
export function workedForSomebody({ ref }: SimKeeper, { judge, book }: Scene): void {
  const sandbox = book.ledgers.get(ref.sandboxId)?.sandbox;
  const isNobodys = sandbox !== undefined && isSpare(sandbox);
  judge.demand(!isNobodys, "spare", () => `${ref.instanceId} is a spare, and works`);
}

/** Whatever the rows say: an instance that was used is nobody's next one. */
export function spareIsUntouched({ ref }: SimKeeper, { spare }: AdmitRequest, scene: Scene): void {
  const isFine = !spare || usedBy(ref.sandboxId, scene) === 0;
  scene.judge.demand(isFine, "spare", () => `${ref.instanceId} was used, and is admitted as a spare`);
}

/** They go when nobody asks for them; and the keeper of one that was given away knows it. */
export function noSpareIsLeft(universe: Universe): string | undefined {
  for (const { sandbox, lease } of universe.book.ledgers.values()) {
    if (sandbox === undefined) continue;
    if (isSpare(sandbox)) return `the spare ${sandbox.id} is left`;
    const keeper = lease?.phase === "live" ? universe.find(lease.instanceId)?.keeper : undefined;
    if (keeper?.policy?.spare === true) return `the keeper of ${sandbox.id} thinks that it is a spare`;
  }
  return undefined;
}

function usedBy(sandboxId: string, { backends }: Scene): number {
  const disks = [...backends.values()].flatMap(({ disks }) => disks.get(sandboxId) ?? []);
  return disks.reduce((sum, { log }) => sum + log.length, 0);
}
