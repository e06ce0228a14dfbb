import type { InstanceRef, LaunchPlan, RestoreProgress } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { instanceDir, readInhabitant } from "../local/identity.ts";
import { type Layout, makeLayout } from "../local/layout.ts";
import { sameInstance } from "../local/marker.ts";
import { legacyIdOf } from "../local/name.ts";
import { exists } from "../local/remove-tree.ts";
import { snapshotDir } from "../local/snapshot-dir.ts";
import type { MountRules } from "../mounts.ts";
import type { AccountTexts } from "./account.ts";
import type { DockerApi } from "./api.ts";
import { ensureBundle } from "./bundle-volume.ts";
import { placesInMemory } from "./container.ts";
import { imageOfSnapshot } from "./copy-layer.ts";
import { lookIntoImage, withoutDraft } from "./draft.ts";
import { type Container, type Image, type Info, isPodman } from "./engine-types.ts";
import { fillDisk } from "./fill-disk.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { requireImage } from "./image.ts";
import { type ImageAccounts, readAccounts } from "./image-accounts.ts";
import { BOOT_FILE, bootDirOf, bootMessage, type Reach } from "./inside.ts";
import { imageIn } from "./labels.ts";
import { findLayer, isFresh, withoutLayer } from "./layer.ts";
import { startContainer } from "./make-container.ts";
import { containerName } from "./names.ts";
import { ensureNetwork } from "./network.ts";
import { type Placed, type Placing, place } from "./place.ts";
import { replaceContainer } from "./replace-container.ts";
import { markStarted, startedAfter, writeBoot } from "./run-dir.ts";
import { settleIn } from "./settle-in.ts";
import type { SnapshotImages } from "./snapshot-images.ts";
import { tarOf } from "./tar.ts";
import { type Account, accountIn, assertUser, plainAccount, userIdsOf } from "./user.ts";

export interface LaunchContext {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly keeperBundle: string;
  readonly defaultImage: string;
  readonly info: Info;
  readonly accounts: ImageAccounts;
  readonly images: SnapshotImages;
  /** What of the host sandboxes may see. */
  readonly mounts: Omit<MountRules, "asRoot">;
  /** How keepers are reached on this daemon. */
  readonly reach: Reach;
  /** How far the copying of snapshots into new volumes is. */
  readonly restoring: Map<string, RestoreProgress>;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Makes the container and starts it, or finds that an earlier call has. One call at a time for a sandbox. */
export async function beginLaunch(ref: InstanceRef, plan: LaunchPlan, context: LaunchContext): Promise<void> {
  const { api, layout, signal } = context;
  await makeLayout(layout);
  const found = await holderOf(ref, context);
  await assertOurs(found, ref, layout);
  const left = await withoutDraft(api, found, signal);
  if (await isUnderWay(left, ref, layout)) return;
  const holder = await withoutLayer(left, ref, context);

  const layer = await findLayer(ref, context);
  const imageName = plan.spec.image ?? imageOf(holder, layer) ?? context.defaultImage;
  const ofSnapshot = await imageWith(plan, context);
  const image = ofSnapshot ?? (await requireImage(api, imageName, signal));
  const account = await accountFor(ref, plan, { ...context, image, holder });
  await ensureNetwork(ref, { ...context, network: plan.spec.network });
  const making = { ...context, imageName, madeOf: ofSnapshot?.Id ?? imageName, image, account, layer };
  const placed = await place(holder, ref, plan, making);
  try {
    await settleAndStart(placed, ref, plan, making);
  } catch (why) {
    const next = await replaceContainer(ref, plan, { ...making, old: placed, why });
    await settleAndStart(next, ref, plan, making);
  }
}

async function settleAndStart(
  { id, startedBefore, isFresh }: Placed,
  ref: InstanceRef,
  plan: LaunchPlan,
  making: Placing,
): Promise<void> {
  const { api, layout, signal, info, accounts, image, account, now } = making;
  const { fromSnapshot: snapshotId } = plan;
  if (snapshotId !== undefined) await fillDisk(ref, { ...making, snapshotId, container: id });
  const volumesOnly = plan.spec.readOnly === true && !isPodman(info);
  // One in which something ran has its lists of users, with what was added to them since.
  const texts =
    volumesOnly || !isFresh
      ? undefined
      : await accounts.read(api, { imageId: image.Id, container: id, signal });
  const inMemory = Object.keys(placesInMemory(plan.spec));
  await settleIn(api, id, { account, texts, inMemory, volumesOnly, now, signal });
  await sendBoot(ref, plan, { ...making, container: id });
  signal.throwIfAborted();
  await markStarted(instanceDir(layout, ref), startedBefore);
  await startContainer(api, id, containerName(ref));
}

/** Who named none goes on with what was the default when the container was made: it has what was installed on that. */
function imageOf(holder: Holder, layer: Container | undefined): string | undefined {
  const container = holder.kind === "known" ? holder.container : layer;
  return imageIn(container?.Config.Labels ?? null);
}

/** With a snapshot's own files in it, where the container is to begin with some. */
async function imageWith({ fromSnapshot }: LaunchPlan, context: LaunchContext): Promise<Image | undefined> {
  const { layout, images, signal } = context;
  if (fromSnapshot === undefined) return undefined;
  const dir = snapshotDir(layout, fromSnapshot);
  return imageOfSnapshot({ dir, snapshotId: fromSnapshot }, { images, signal });
}

/** Its boot message, and where the daemon does not see it on our disk, its program too. */
async function sendBoot(
  ref: InstanceRef,
  plan: LaunchPlan,
  context: LaunchContext & { image: Image; account: Account; container: string },
): Promise<void> {
  const { api, layout, reach, image, account, container, signal, now } = context;
  const { uid, gid } = account;
  const boot = bootMessage(ref, plan, context);
  if (reach === "files") return writeBoot(instanceDir(layout, ref), boot, uid);
  await ensureBundle({ api, bundle: context.keeperBundle, container, imageId: image.Id, signal });
  const entry = { path: BOOT_FILE, uid, gid, mode: 0o400, content: JSON.stringify(boot) };
  await api.request({
    ...{ method: "PUT", path: `/containers/${container}/archive`, query: { path: bootDirOf(reach) } },
    ...{ tar: tarOf([entry], { now }), signal },
  });
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
  const container = holder.kind === "known" ? holder.container : undefined;
  const status = container?.State.Status;
  if (status === "running" || status === "paused" || status === "restarting") return true;
  const obstacle = await obstacleTo(container, instanceDir(layout, ref));
  if (obstacle === undefined) return false;
  throw new HoldfastError("launch_failed", `${containerName(ref)} cannot be started: ${obstacle}`, {
    hint: "Stop it, which removes what is left, and launch the next generation.",
    started: "no",
  });
}

/** What is wrong with the remains of an earlier launch, if there are any. */
async function obstacleTo(container: Container | undefined, dir: string): Promise<string | undefined> {
  const before = await startedAfter(dir);
  if (container === undefined) {
    return before === undefined ? undefined : "it was started before, and its container was removed";
  }
  const { Status, StartedAt } = container.State;
  const wasStarted = before !== undefined && Status !== "created" && before !== StartedAt;
  if (wasStarted) return `it was started before, and its container is ${Status}`;
  return exists(dir) ? undefined : `its container is there, and its directory ${dir} is gone`;
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
        ? await textsOf(holder.container, { api, accounts, imageId: image.Id, signal })
        : await lookIntoImage(api, { ref, image, accounts, now, signal }));
    account = accountIn(texts, user ?? "");
  }
  assertUser(account, ids);
  return account;
}

/** Work that was root may have changed them: what it wrote counts for its own sandbox, never for the image. */
function textsOf(
  container: Container,
  look: { api: DockerApi; accounts: ImageAccounts; imageId: string; signal: AbortSignal },
): Promise<AccountTexts> {
  const { api, accounts, imageId, signal } = look;
  const { Id } = container;
  if (isFresh(container)) return accounts.read(api, { imageId, container: Id, signal });
  return readAccounts(api, { container: Id, signal });
}
