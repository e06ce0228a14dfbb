import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { containerBody } from "./container.ts";
import { refusalOf } from "./errors.ts";
import { inspectContainer } from "./holder.ts";
import { HAS_LAYER_LABEL } from "./labels.ts";
import { ownVolumes, putLayerBack } from "./layer.ts";
import { makeContainer } from "./make-container.ts";
import { containerName, diskContainerName } from "./names.ts";
import { NEVER, type Placed, type Placing, viewOf } from "./place.ts";
import { removeContainer } from "./remove-container.ts";

/**
 * A container that ran before may not start any more, because of what it was made with: a runtime that the daemon does
 * not have now, a mount that it refuses now. What is in it can still be had. So it becomes an image, and a new container
 * of that image takes its place. At every moment one of the two is there under a name where it is looked for: the old one
 * as the disk, or the new one as the instance, which a stop keeps though it never ran.
 */
export async function replaceContainer(
  ref: InstanceRef,
  plan: LaunchPlan,
  { old, why, ...context }: Placing & { old: Placed; why: unknown },
): Promise<Placed> {
  const { api, images, signal } = context;
  if (old.startedBefore === NEVER || !isRefused(why)) throw why;
  await putLayerBack(ref, old.id, context);
  const container = await inspectContainer(api, old.id, signal);
  const volumes = container === undefined ? [] : ownVolumes(container);
  if (volumes.length > 0) throw hopeless(ref, { why, cause: `only it has the volume ${volumes.join(", ")}` });
  const id = `moved-${ref.sandboxId}-g${ref.generation}`;
  await images.remove(id, signal);
  const image = await images
    .commit(id, { container: old.id, sizeBytes: 0, signal })
    .catch((cause: unknown) => {
      throw isRefused(cause) ? hopeless(ref, { why, cause }) : cause;
    });
  const body = containerBody({ ...(await viewOf(ref, plan, context)), madeOf: image });
  const Labels = { ...(body.Labels as object), [HAS_LAYER_LABEL]: "1" };
  const made = await makeContainer(api, containerName(ref), { ...body, Labels });
  await removeContainer(api, old.id, signal);
  return { id: made, startedBefore: NEVER, isFresh: false };
}

/** By the daemon, and not for want of room. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof HoldfastError) || error.details?.errno !== undefined) return false;
  return error.code === "launch_failed" || refusalOf(error) !== undefined;
}

/** The remedy is in the message: that is what a sandbox remembers of its failure. */
function hopeless(ref: InstanceRef, { why, cause }: { why: unknown; cause: unknown }): HoldfastError {
  const name = diskContainerName(ref);
  const said = (error: unknown) => (error instanceof Error ? error.message : String(error));
  return new HoldfastError(
    "launch_failed",
    `${said(why)}; nor can what is in it be copied (${said(cause)}). To go on without the container's own files, with /workspace and the home directory: docker rm ${name}`,
    { hint: `Repair the daemon, or: docker rm ${name}, and start the sandbox`, cause, started: "no" },
  );
}
