import { basename, join } from "node:path";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError, type KeeperBoot } from "@holdfast/protocol";
import { type AllowedMount, resolveMounts } from "../mounts.ts";
import { withBundle } from "./bundle.ts";
import { groupName, type LimitsPlan, makeGroups, maxProcesses, planLimits } from "./cgroup.ts";
import type { CgroupHost } from "./cgroup-host.ts";
import { type Disk, ensureDisk } from "./disk.ts";
import { findHere } from "./here.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { instanceDir } from "./identity.ts";
import { baseEnvironment, inside } from "./inside.ts";
import { makeInstanceDir, writeInputs } from "./instance-dir.ts";
import { CLAIM, startLauncher } from "./launcher.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { type Marker, printMarker } from "./marker.ts";
import { legacyIdOf, nameOf } from "./name.ts";
import { placeOf, readBootId } from "./place.ts";
import { exists } from "./remove-tree.ts";
import type { SharedFiles } from "./shared-files.ts";

export interface LaunchContext {
  readonly layout: Layout;
  /** Where the keeper's bundle comes from. */
  readonly keeperBundle: string;
  readonly cgroups: CgroupHost;
  readonly shared: SharedFiles;
  readonly allowedMounts: readonly AllowedMount[];
  readonly now: number;
  readonly signal: AbortSignal;
}

/**
 * Everything that must not happen twice at a time: makes the disk, the instance's directory and its groups, then
 * starts the launcher and returns it, unless one was ever started for this instance.
 */
export async function beginLaunch(
  ref: InstanceRef,
  plan: LaunchPlan,
  context: LaunchContext,
): Promise<Bun.Subprocess | undefined> {
  const { layout } = context;
  const network = plan.spec.network ?? "full";
  makeLayout(layout);
  const holder = await holderOf(layout, ref);
  assertOurs(holder, ref, layout);
  if (holder.kind === "known" && (await wasStarted(layout, ref))) return undefined;

  const rules = { allowed: context.allowedMounts, dataDir: layout.dataDir, asRoot: false };
  const mounts = await resolveMounts(plan.spec.mounts, rules);
  const limits = planLimits(groupName(layout, ref), plan.spec.limits, context.cgroups);
  const { lifetimeSeconds, fence, hostname } = plan;
  const marker: Marker = { ref, createdAt: context.now, lifetimeSeconds, fence };
  const { bundle, disk } = await makePlace(marker, limits, context);
  makeGroups(limits, disk.uid);
  const instance = instanceDir(layout, ref);
  const memoryCgroup = limits.memoryDir;
  const { uid } = disk;
  writeInputs(instance, { uid, network, hostname, boot: bootOf(ref, plan, memoryCgroup) });

  const text = printMarker({ ...marker, place: placeOf(layout.dataDir) ?? null });
  const view = {
    name: nameOf(ref),
    hostname,
    marker: text,
    bundle,
    shared: context.shared.refresh(),
    disk: disk.dir,
    instance,
    network,
    memoryCgroup,
    mounts,
    tmpfs: plan.spec.tmpfs ?? {},
  };
  const { joins, startIn, prefix: limitsPrefix } = limits;
  return startLauncher({ view, uid, joins, startIn, limitsPrefix });
}

/** The disk, and the instance's directory with its identity: from then on its bundle is in use. */
function makePlace(
  marker: Marker,
  limits: LimitsPlan,
  { layout, keeperBundle, signal, now }: LaunchContext,
): Promise<{ bundle: string; disk: Disk }> {
  return withBundle({ layout, bundle: keeperBundle, signal }, async (bundle) => {
    const disk = await ensureDisk(layout, marker.ref, { now });
    await makeInstanceDir(layout, {
      ...marker,
      uid: disk.uid,
      limits: limits.report,
      bundle: basename(bundle),
      cgroups: limits.groups.map((group) => group.dir),
      bootId: readBootId(),
    });
    return { bundle, disk };
  });
}

/** Or is being started right now, by the launcher of a server that has died: what it is about to read stays as it is. */
async function wasStarted(layout: Layout, ref: InstanceRef): Promise<boolean> {
  const isClaimed = exists(join(instanceDir(layout, ref), CLAIM));
  return isClaimed || (await findHere(layout, ref)).length > 0;
}

/** The name is free, or it is that very instance's from an earlier call. */
function assertOurs(holder: Holder, ref: InstanceRef, layout: Layout): void {
  if (ref.instanceId === legacyIdOf(nameOf(ref))) {
    throw new HoldfastError(
      "invalid_argument",
      "an instance of which only the name is known cannot be launched",
      {
        hint: "Stop it, and launch the next generation.",
        started: "no",
      },
    );
  }
  const isFree = holder.kind === "nobody" && !exists(instanceDir(layout, ref));
  if (isFree || (holder.kind === "known" && mayBe(holder, ref))) return;
  throw new HoldfastError("already_exists", `${nameOf(ref)} is already the name of something else`, {
    hint: "Launch the next generation; what is there was left alone.",
    details: { ...(holder.kind === "known" && { holder: holder.marker.ref }) },
    started: "no",
  });
}

function bootOf(ref: InstanceRef, plan: LaunchPlan, memoryDir: string | undefined): KeeperBoot {
  return {
    secret: plan.secret,
    sandboxId: ref.sandboxId,
    instanceId: ref.instanceId,
    generation: ref.generation,
    socketPath: inside.socket,
    stateDir: inside.state,
    env: { ...baseEnvironment, ...plan.spec.env },
    cwd: inside.workspace,
    maxProcesses: maxProcesses(plan.spec.limits),
    ...(memoryDir !== undefined && { memoryCgroupDir: inside.memoryCgroup }),
  };
}
