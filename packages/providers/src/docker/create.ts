import { basename, join } from "node:path";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { withBundle } from "../local/bundle.ts";
import { type Identity, instanceDir, readInhabitant } from "../local/identity.ts";
import { type Layout, makeLayout } from "../local/layout.ts";
import { sameInstance } from "../local/marker.ts";
import { legacyIdOf } from "../local/name.ts";
import { readBootId } from "../local/place.ts";
import { exists } from "../local/remove-tree.ts";
import { type MountRules, resolveMounts } from "../mounts.ts";
import type { DockerApi } from "./api.ts";
import { containerBody } from "./container.ts";
import { ensureDisk } from "./disk.ts";
import { lookIntoImage, withoutDraft } from "./draft.ts";
import { type ContainerStatus, type Image, type Info, isPodman } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { requireImage } from "./image.ts";
import type { ImageAccounts } from "./image-accounts.ts";
import { bootMessage } from "./inside.ts";
import { planLimits } from "./limits.ts";
import { containerName } from "./names.ts";
import { ensureNetwork } from "./network.ts";
import { makeRunDir, markStarted, wasStarted, writeBoot } from "./run-dir.ts";
import { assertRuntime } from "./runtimes.ts";
import { settleIn } from "./settle-in.ts";
import { type Account, accountIn, assertUser, plainAccount, userIdsOf } from "./user.ts";

export interface LaunchContext {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly keeperBundle: string;
  readonly defaultImage: string;
  readonly info: Info;
  readonly accounts: ImageAccounts;
  /** What of the host sandboxes may see. */
  readonly mounts: Omit<MountRules, "asRoot">;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Makes the container and starts it, or finds that an earlier call has. One call at a time for a sandbox. */
export async function beginLaunch(ref: InstanceRef, plan: LaunchPlan, context: LaunchContext): Promise<void> {
  const { api, layout, signal, info, accounts } = context;
  const name = containerName(ref);
  await makeLayout(layout);
  const found = await holderOf(api, ref, signal);
  await assertOurs(found, ref, layout);
  const holder = await withoutDraft(api, found, signal);
  if (await isUnderWay(holder, ref, layout)) return;

  const imageName = plan.spec.image ?? context.defaultImage;
  const image = await requireImage(api, imageName, signal);
  const account = await accountFor(ref, plan, { ...context, image, holder });
  await ensureNetwork(ref, { ...context, network: plan.spec.network });
  const making = { ...context, imageName, image, account };
  const id = holder.kind === "known" ? holder.container.Id : await make(ref, plan, making);
  const dir = instanceDir(layout, ref);
  const volumesOnly = plan.spec.readOnly === true && !isPodman(info);
  const texts = volumesOnly
    ? undefined
    : await accounts.read(api, { imageId: image.Id, container: id, signal });
  await settleIn(api, id, { account, texts, volumesOnly, now: context.now, signal });
  await writeBoot(dir, bootMessage(ref, plan, { image, info, account }), account.uid);
  signal.throwIfAborted();
  await markStarted(dir);
  await start(api, id, name);
}

/** The name is free, or it is that very instance's from an earlier call. */
async function assertOurs(holder: Holder, ref: InstanceRef, layout: Layout): Promise<void> {
  const name = containerName(ref);
  if (ref.instanceId === legacyIdOf(name)) {
    throw new HoldfastError(
      "invalid_argument",
      "an instance of which only the name is known cannot be launched",
      {
        hint: "Stop it, and launch the next generation.",
        started: "no",
      },
    );
  }
  const inhabitant = await readInhabitant(layout, ref);
  const isFree = holder.kind === "nobody" || (holder.kind === "known" && mayBe(holder, ref));
  const isOurPlace =
    inhabitant.kind === "nobody" ||
    (inhabitant.kind === "known" && sameInstance(inhabitant.identity.ref, ref));
  if (isFree && isOurPlace) return;
  throw new HoldfastError("already_exists", `${name} is already the name of something else`, {
    hint: "Launch the next generation; what is there was left alone.",
    details: { ...(holder.kind === "known" && { holder: holder.marker.ref }) },
    started: "no",
  });
}

/** Whether it runs already. One that has ended is never started again: the next generation is. */
async function isUnderWay(holder: Holder, ref: InstanceRef, layout: Layout): Promise<boolean> {
  const status = holder.kind === "known" ? holder.container.State.Status : undefined;
  if (status === "running" || status === "paused" || status === "restarting") return true;
  const obstacle = await obstacleTo(status, instanceDir(layout, ref));
  if (obstacle === undefined) return false;
  throw new HoldfastError("launch_failed", `${containerName(ref)} cannot be started: ${obstacle}`, {
    hint: "Stop it, which removes what is left, and launch the next generation.",
    started: "no",
  });
}

/** What is wrong with the remains of an earlier launch, if there are any. */
async function obstacleTo(status: ContainerStatus | undefined, dir: string): Promise<string | undefined> {
  if (status === undefined) {
    return (await wasStarted(dir)) ? "it was started before, and its container was removed" : undefined;
  }
  if (status !== "created") return `it was started before, and its container is ${status}`;
  return (await exists(dir)) ? undefined : `its container is there, and its directory ${dir} is gone`;
}

/** Who the work is; the image is asked where it must be. */
async function accountFor(
  ref: InstanceRef,
  { spec: { user } }: LaunchPlan,
  { api, accounts, image, holder, info, signal, now }: LaunchContext & { image: Image; holder: Holder },
): Promise<Account> {
  const ids = userIdsOf(info);
  let account = plainAccount(user, ids);
  if (account === undefined) {
    const texts =
      accounts.get(image.Id) ??
      (holder.kind === "known"
        ? await accounts.read(api, { imageId: image.Id, container: holder.container.Id, signal })
        : await lookIntoImage(api, { ref, image, accounts, now, signal }));
    account = accountIn(texts, user ?? "");
  }
  assertUser(account, ids);
  return account;
}

/** The volumes, the instance's directory, and the container: named, labelled and not started. Returns its id. */
async function make(
  ref: InstanceRef,
  plan: LaunchPlan,
  context: LaunchContext & { imageName: string; image: Image; account: Account },
): Promise<string> {
  const { api, layout, signal, now, imageName, image, account, info } = context;
  const limits = planLimits(plan.spec.limits, info);
  const ids = userIdsOf(info);
  const asRoot = account.uid === 0 && ids === "any";
  const hostMounts = await resolveMounts(plan.spec.mounts, { ...context.mounts, asRoot });
  assertRuntime(plan.spec.runtime, info);
  await ensureDisk(api, ref, { now, signal });
  const { uid } = account;
  return withBundle({ layout, bundle: context.keeperBundle, signal }, async (bundle) => {
    const { lifetimeSeconds, fence } = plan;
    const facts = { ref, createdAt: now, lifetimeSeconds, fence, uid, limits: limits.report, cgroups: [] };
    const identity: Identity = { ...facts, bundle: basename(bundle), bootId: readBootId() };
    await makeRunDir(layout, identity);
    signal.throwIfAborted();
    const run = join(instanceDir(layout, ref), "run");
    const view = {
      ref,
      plan,
      createdAt: now,
      imageName,
      image,
      account,
      ids,
      hostMounts,
      bundle,
      run,
      limits,
    };
    return create(api, containerName(ref), containerBody(view));
  });
}

async function create(api: DockerApi, name: string, json: unknown): Promise<string> {
  try {
    const call = { method: "POST", path: "/containers/create", query: { name }, json } as const;
    const made = await api.json<{ Id: string }>({ ...call, signal: toTheEnd() });
    return made?.Id ?? name;
  } catch (cause) {
    switch (refusalOf(cause)) {
      case 400:
      case 404:
        throw launchFailed(cause, name);
      case 409:
        throw new HoldfastError("already_exists", `${name} was taken by another container meanwhile`, {
          hint: "Observe it: it may be the same launch, from another server.",
          cause,
        });
      default:
        throw cause;
    }
  }
}

async function start(api: DockerApi, id: string, name: string): Promise<void> {
  try {
    await api.request({ method: "POST", path: `/containers/${id}/start`, signal: toTheEnd() });
  } catch (cause) {
    const isStorage = cause instanceof HoldfastError && cause.details?.errno !== undefined;
    if (refusalOf(cause) === undefined || isStorage) throw cause;
    throw launchFailed(cause, name);
  }
}

function launchFailed(cause: unknown, name: string): HoldfastError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new HoldfastError("launch_failed", `the container ${name} could not be started: ${said}`, {
    hint: said.includes("bind source path does not exist")
      ? "This Docker does not see the files of this machine: it must run here, and not in a virtual machine or beside a server in a container."
      : "Look at the image, and at what the daemon's log says.",
    cause,
  });
}

/** The caller may give up; what the daemon has begun goes on, so we wait until we know of it. */
function toTheEnd(): AbortSignal {
  return new AbortController().signal;
}
