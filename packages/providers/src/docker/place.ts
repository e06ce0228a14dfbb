import { basename, join } from "node:path";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { withBundle } from "../local/bundle.ts";
import { type Identity, instanceDir } from "../local/identity.ts";
import { readBootId } from "../local/place.ts";
import { resolveMounts } from "../mounts.ts";
import { type ContainerView, containerBody, specHash } from "./container.ts";
import type { LaunchContext } from "./create.ts";
import { ensureDisk, findVolumes, surveyDisk } from "./disk.ts";
import { doorsOf, pointDoors } from "./doors.ts";
import { type Container, type Image, isPodman } from "./engine-types.ts";
import type { Holder } from "./holder.ts";
import { imageIn, specIn } from "./labels.ts";
import { isFresh, ownVolumes, takeLayer } from "./layer.ts";
import { planLimits } from "./limits.ts";
import { makeContainer } from "./make-container.ts";
import { moveLayer } from "./move-layer.ts";
import { containerName } from "./names.ts";
import { rejoinNetwork } from "./network.ts";
import { removeContainer } from "./remove-container.ts";
import { makeRunDir } from "./run-dir.ts";
import { assertRuntime } from "./runtimes.ts";
import { type Account, userIdsOf } from "./user.ts";

/** What a container is made of. */
export type Placing = LaunchContext & {
  imageName: string;
  madeOf: string;
  image: Image;
  account: Account;
  /** What waits for this generation. */
  layer: Container | undefined;
};

/** A container that has the instance's name, and is not started yet. */
export interface Placed {
  readonly id: string;
  /** As the daemon says it. */
  readonly startedBefore: string;
  /** Nothing ever ran on its files but what made its image. */
  readonly isFresh: boolean;
}

/** In the words of the daemon, of one that was never started. */
export const NEVER = "0001-01-01T00:00:00Z";

/**
 * The instance's directory, the volumes, and the container: the sandbox's own, with all that is in it, or else a new
 * one. What was found of the disk is written down before anything is made of what was not.
 */
export async function place(
  holder: Holder,
  ref: InstanceRef,
  plan: LaunchPlan,
  context: Placing,
): Promise<Placed> {
  const { api, layout, signal, now, layer } = context;
  const view = await viewOf(ref, plan, context);
  // What a container was made with cannot be changed; what is in it can be had on the same image.
  const isSame = layer !== undefined && specIn(layer.Config.Labels) === specHash(view);
  const isMovable = layer !== undefined && imageIn(layer.Config.Labels) === view.imageName && isWhole(layer);
  // The start of this machine says nothing of another's.
  const bootId = context.reach === "api" ? null : readBootId();
  return withBundle({ layout, bundle: context.keeperBundle, signal }, async (bundle) => {
    const volumes = await findVolumes(api, ref, signal);
    const identity = await makeRunDir(layout, ref, async (): Promise<Identity> => {
      const { lifetimeSeconds, fence } = plan;
      const disk = surveyDisk(volumes, { layer: isSame || isMovable });
      const facts = { ref, createdAt: now, lifetimeSeconds, fence, uid: view.account.uid, disk, cgroups: [] };
      return { ...facts, limits: view.limits.report, bundle: basename(bundle), bootId };
    });
    const run = join(instanceDir(layout, ref), "run");
    await pointDoors(layout, ref, { run, bundle: join(layout.keepers, identity.bundle) });
    await ensureDisk(api, ref, { volumes, now, signal });
    signal.throwIfAborted();
    if (holder.kind === "known") {
      // An interrupted launch made it, with all that is in the one that waits.
      if (layer !== undefined) await removeContainer(api, layer.Id, signal);
      return asItIs(holder.container);
    }
    if (layer !== undefined && isSame && (await takeLayer(ref, layer, context))) {
      await rejoinNetwork(ref, layer, { ...context, network: plan.spec.network });
      return asItIs(layer);
    }
    const body = containerBody(view);
    if (layer !== undefined && isMovable) {
      const id = await moveLayer(ref, { ...context, from: layer, body, why: madeOtherwise(layer) });
      return { id, startedBefore: NEVER, isFresh: false };
    }
    if (layer !== undefined) await removeContainer(api, layer.Id, signal);
    const id = await makeContainer(api, containerName(ref), body);
    return { id, startedBefore: NEVER, isFresh: true };
  });
}

/** Refuses what the operator does not allow any more, also where the container is there already. */
export async function viewOf(ref: InstanceRef, plan: LaunchPlan, context: Placing): Promise<ContainerView> {
  const { layout, info, now, imageName, madeOf, image, account } = context;
  const ids = userIdsOf(info);
  const asRoot = account.uid === 0 && ids === "any";
  const hostMounts = await resolveMounts(plan.spec.mounts, { ...context.mounts, asRoot });
  assertRuntime(plan.spec.runtime, info);
  if (context.reach === "api" && hostMounts.length > 0) throw notOurFiles();
  const limits = planLimits(plan.spec.limits, info);
  const { reach, keeperBundle } = context;
  const engine = isPodman(info) ? "podman" : "docker";
  const way = { doors: doorsOf(layout, ref), reach, keeperBundle };
  const made = { imageName, madeOf, image };
  return { ref, plan, createdAt: now, ...made, account, ids, engine, hostMounts, limits, ...way };
}

/** No part of it is where no other container can have it. */
function isWhole(container: Container): boolean {
  return ownVolumes(container).length === 0;
}

function madeOtherwise({ Name }: Container): Error {
  return new Error(`the container ${Name.slice(1)} was made with other mounts or limits`);
}

function notOurFiles(): HoldfastError {
  return new HoldfastError("unsupported", "this Docker does not see the files of this machine", {
    hint: "Leave out `mounts`, or use a daemon that runs here.",
    started: "no",
  });
}

function asItIs(container: Container): Placed {
  const { Id, State } = container;
  const startedBefore = State.Status === "created" ? NEVER : State.StartedAt;
  return { id: Id, startedBefore, isFresh: isFresh(container) };
}
