import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { HAS_LAYER_LABEL } from "./labels.ts";
import { ownVolumes } from "./layer.ts";
import { makeContainer } from "./make-container.ts";
import { containerName, diskContainerName } from "./names.ts";
import { removeContainer } from "./remove-container.ts";
import type { SnapshotImages } from "./snapshot-images.ts";

export interface Moving {
  readonly api: DockerApi;
  readonly images: SnapshotImages;
  /** One that waits, under the name of a disk. */
  readonly from: Container;
  /** What the new one is made with, but for its image. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Why it cannot stay where it is. */
  readonly why: unknown;
  readonly signal: AbortSignal;
}

/**
 * What is in a container becomes an image, and a new container of that image takes its place. At every moment one of the
 * two is there under a name where it is looked for: the old one as the disk, or the new one as the instance, which a stop
 * keeps though it never ran. Returns the new one's id.
 */
export async function moveLayer(
  ref: InstanceRef,
  { api, images, from, body, why, signal }: Moving,
): Promise<string> {
  const volumes = ownVolumes(from);
  if (volumes.length > 0) throw hopeless(ref, { why, cause: `only it has the volume ${volumes.join(", ")}` });
  const id = `moved-${ref.sandboxId}-g${ref.generation}`;
  await images.remove(id, signal);
  const Image = await images
    .commit(id, { container: from.Id, sizeBytes: 0, signal })
    .catch((cause: unknown) => {
      throw isRefused(cause) ? hopeless(ref, { why, cause }) : cause;
    });
  const Labels = { ...(body.Labels as object), [HAS_LAYER_LABEL]: "1" };
  const made = await makeContainer(api, containerName(ref), { ...body, Image, Labels });
  await removeContainer(api, from.Id, signal);
  return made;
}

/** By the daemon, and not for want of room. */
export function isRefused(error: unknown): boolean {
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
