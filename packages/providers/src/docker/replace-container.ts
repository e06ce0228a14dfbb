import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { containerBody } from "./container.ts";
import { inspectContainer } from "./holder.ts";
import { putLayerBack } from "./layer.ts";
import { isRefused, moveLayer } from "./move-layer.ts";
import { NEVER, type Placed, type Placing, viewOf } from "./place.ts";

/**
 * A container that ran before may not start any more, because of what it was made with: a runtime that the daemon does
 * not have now, a mount that it refuses now. What is in it can still be had, and moves to a new one.
 */
export async function replaceContainer(
  ref: InstanceRef,
  plan: LaunchPlan,
  { old, why, ...context }: Placing & { old: Placed; why: unknown },
): Promise<Placed> {
  if (old.startedBefore === NEVER || !isRefused(why)) throw why;
  await putLayerBack(ref, old.id, context);
  const from = await inspectContainer(context.api, old.id, context.signal);
  if (from === undefined) throw why;
  const body = containerBody(await viewOf(ref, plan, context));
  return { id: await moveLayer(ref, { ...context, from, body, why }), startedBefore: NEVER, isFresh: false };
}
