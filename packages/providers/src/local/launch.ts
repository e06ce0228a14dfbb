import { basename, join } from "node:path";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError, type KeeperBoot } from "@holdfast/protocol";
import { makeGroups, maxProcesses, planLimits } from "./cgroup.ts";
import type { CgroupHost } from "./cgroup-host.ts";
import { ensureDisk } from "./disk.ts";
import { type Identity, instanceDir, nameOf, readIdentity, sameInstance } from "./identity.ts";
import { baseEnvironment, inside } from "./inside.ts";
import { makeInstanceDir, writeInputs } from "./instance-dir.ts";
import { CLAIM, startLauncher } from "./launcher.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { assertFullNetwork } from "./network.ts";
import { findByName } from "./processes.ts";
import { exists } from "./remove-tree.ts";

export interface LaunchContext {
  readonly layout: Layout;
  /** Where the keeper's bundle is, put there if it was not. */
  readonly installedBundle: () => Promise<string>;
  readonly cgroups: CgroupHost;
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
  const name = nameOf(ref);
  const network = plan.spec.network ?? "full";
  if (network === "full") assertFullNetwork();
  await makeLayout(layout);
  const instance = instanceDir(layout, ref);
  const identity = await readIdentity(instance);
  assertOurs(identity, ref);
  if (identity !== undefined && (await wasStarted(instance, name))) return undefined;

  const limits = planLimits(name, plan.spec.limits, context.cgroups);
  const cgroups = limits.groups.map((group) => group.dir);
  const bundle = await context.installedBundle();
  const { uid, dir: disk } = await ensureDisk(layout, ref);
  await makeInstanceDir(layout, { ref, uid, bundle: basename(bundle), limits: limits.report, cgroups });
  await makeGroups(limits.groups);
  const { hostname } = plan;
  const memoryCgroup = limits.memoryDir;
  await writeInputs(instance, { uid, network, hostname, boot: bootOf(ref, plan, memoryCgroup) });

  const marker = JSON.stringify(ref);
  const view = { name, hostname, marker, bundle, disk, instance, network, memoryCgroup };
  return startLauncher({ view, uid, cgroups, limitsPrefix: limits.prefix });
}

/** Or is being started right now, by the launcher of a server that has died: what it is about to read stays as it is. */
async function wasStarted(instance: string, name: string): Promise<boolean> {
  return (await exists(join(instance, CLAIM))) || (await findByName(name)).length > 0;
}

function assertOurs(identity: Identity | undefined, ref: InstanceRef): void {
  if (identity === undefined || sameInstance(identity.ref, ref)) return;
  throw new HoldfastError("already_exists", `${nameOf(ref)} is already the name of another instance`, {
    hint: "Launch the next generation; the other instance was left alone.",
    details: { holder: identity.ref },
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
