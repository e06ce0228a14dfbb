import type { InstanceRef, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { readInhabitant } from "../local/identity.ts";
import { inside } from "../local/inside.ts";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import type { Container, ListedContainer } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { type Holder, inspectContainer } from "./holder.ts";
import { placeOfPart } from "./inside.ts";
import { HAS_LAYER_LABEL, readInstanceLabels, SCHEMA_LABEL } from "./labels.ts";
import { containerName, diskContainerName, parseContainerName } from "./names.ts";
import { removeContainer } from "./remove-container.ts";

/**
 * The layer: what a container's file system has beyond its image, such as packages that were installed. It is a part of
 * the sandbox's disk, and lives as long as the container does. So one that has ended gets the name of a disk, and the
 * next generation gives it its own and starts it again. A container has one name at any time, and a change of names is
 * done or not done: whoever comes after a crash finds one of the two.
 *
 * On a disk that is full to the last byte the daemon cannot write down another name. There the container keeps the name of
 * its last generation, and what makes it a layer is that no directory says any more who lives in it.
 */

interface Asking {
  readonly api: DockerApi;
  readonly signal: AbortSignal;
}

interface Looking extends Asking {
  readonly layout: Layout;
}

/** The sandbox's container that waits for its next generation. */
export async function findLayer(ref: SandboxRef, looking: Looking): Promise<Container | undefined> {
  const all = await containersOf(ref, looking);
  const isLayer = await Promise.all(all.map((one) => isWaiting(one, looking)));
  const waiting = all.filter((_, i) => isLayer[i]).sort((a, b) => generationIn(b) - generationIn(a));
  return waiting[0] && inspectContainer(looking.api, waiting[0].Id, looking.signal);
}

/** Whether it is a part of a disk, and no instance. Only of those that have our labels and their name. */
export async function isWaiting(
  container: ListedContainer,
  { api, layout, signal }: Looking,
): Promise<boolean> {
  const name = nameIn(container);
  const named = parseContainerName(name);
  if (named === undefined || readInstanceLabels(name, container.Labels ?? {}) === undefined) return false;
  const { sandboxId, generation } = named;
  if (generation === undefined) return true;
  if ((await readInhabitant(layout, { sandboxId, generation })).kind !== "nobody") return false;
  // Looked at: a list shows what could be written down.
  return (await inspectContainer(api, container.Id, signal))?.State.Status === "exited";
}

/**
 * A container that has ended becomes a part of the disk. `removed`: nothing of it is worth keeping, because it never
 * ran and has no other's files, or because a later one of the sandbox is there already.
 */
export async function keepLayer(
  ref: InstanceRef,
  container: Container,
  asking: Asking,
): Promise<"kept" | "kept under its name, for want of room for another" | "removed"> {
  const { Id } = container;
  const isWorthIt = !isFresh(container) && !(await hasLater(ref, asking));
  try {
    if (isWorthIt && (await rename(Id, diskContainerName(ref), asking))) return "kept";
  } catch (error) {
    if (!isFull(error)) throw error;
    return "kept under its name, for want of room for another";
  }
  await removeContainer(asking.api, Id, asking.signal);
  return "removed";
}

/** Whether it has nothing but what its image had, and what we put there. */
export function isFresh({ State, Config }: Container): boolean {
  return State.Status === "created" && Config.Labels?.[HAS_LAYER_LABEL] === undefined;
}

/** Where it has volumes that its image asked for: no other container can have them. */
export function ownVolumes({ Mounts }: Container): string[] {
  const ours: readonly string[] = [...Object.values(placeOfPart), inside.bin];
  const volumes = (Mounts ?? []).filter(
    ({ Type, Destination }) => Type === "volume" && !ours.includes(Destination),
  );
  return volumes.map(({ Destination }) => Destination);
}

/** An interrupted launch may have taken it, and not started it: it is put back, and the launch begins anew. */
export async function withoutLayer(holder: Holder, ref: InstanceRef, asking: Asking): Promise<Holder> {
  if (holder.kind !== "known" || holder.container.State.Status === "created") return holder;
  const isBack = await rename(holder.container.Id, diskContainerName(ref), asking);
  return isBack ? { kind: "nobody" } : holder;
}

/** A launch that has taken it gives it back: it is a part of the disk again. */
export async function putLayerBack(ref: SandboxRef, id: string, asking: Asking): Promise<void> {
  if (await rename(id, diskContainerName(ref), asking)) return;
  throw new HoldfastError("unavailable", `${diskContainerName(ref)} is the name of another container`);
}

/** The next generation takes it over. */
export async function takeLayer(ref: InstanceRef, { Id }: Container, asking: Asking): Promise<boolean> {
  return rename(Id, containerName(ref), asking);
}

/** One that waits has ended after every instance that is still there beside it: a launch would have taken it. */
async function hasLater(ref: InstanceRef, asking: Asking): Promise<boolean> {
  return (await containersOf(ref, asking)).some((one) => generationIn(one) > ref.generation);
}

/** All that have the sandbox's labels, and a name that goes with them. */
async function containersOf(
  { installationId, sandboxId }: SandboxRef,
  { api, signal }: Asking,
): Promise<ListedContainer[]> {
  const filters = JSON.stringify({ label: [SCHEMA_LABEL, `holdfast.sandbox=${sandboxId}`] });
  const call = { method: "GET", path: "/containers/json", query: { all: "1", filters }, signal } as const;
  const all = (await api.json<ListedContainer[]>(call)) ?? [];
  return all.filter((one) => {
    const owner = readInstanceLabels(nameIn(one), one.Labels ?? {})?.ref;
    return owner?.installationId === installationId && owner.sandboxId === sandboxId;
  });
}

/** Whatever waits under the name of a disk comes after all generations. */
function generationIn(container: ListedContainer): number {
  return parseContainerName(nameIn(container))?.generation ?? Number.POSITIVE_INFINITY;
}

function nameIn({ Names }: ListedContainer): string {
  return (Names[0] ?? "").slice(1);
}

function isFull(error: unknown): boolean {
  return error instanceof HoldfastError && error.details?.errno === "ENOSPC";
}

/** `false` if the name is another's. */
async function rename(id: string, name: string, { api, signal }: Asking): Promise<boolean> {
  try {
    await api.request({ method: "POST", path: `/containers/${id}/rename`, query: { name }, signal });
    return true;
  } catch (error) {
    if (refusalOf(error) === 409) return false;
    throw error;
  }
}
