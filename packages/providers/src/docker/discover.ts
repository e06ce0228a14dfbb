import type { Found, FoundInstance, InstanceRef, SandboxRef } from "@holdfast/core";
import { namesOnDisk, readInhabitant } from "../local/identity.ts";
import type { Layout } from "../local/layout.ts";
import { legacyIdOf, type NamedBy } from "../local/name.ts";
import type { DockerApi } from "./api.ts";
import { listDisks, ownerOf } from "./disk.ts";
import type { ListedContainer } from "./engine-types.ts";
import { inhabitantOf } from "./holder.ts";
import { type DiskMarker, readInstanceLabels, SCHEMA_LABEL } from "./labels.ts";
import { isWaiting } from "./layer.ts";
import { containerName, parseContainerName, shortInstallation } from "./names.ts";

interface Look {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly signal: AbortSignal;
}

/** Everything of ours on this daemon and in this data dir, of whichever installation; complete, or an error. */
export async function discoverAll(look: Look): Promise<Found[]> {
  const containers = await listContainers(look);
  const layers = await Promise.all(containers.map((one) => layerIn(one, look)));
  return [
    ...(await allInstances(containers, look)),
    ...(await listDisks(look.api, {
      layers: layers.filter((layer) => layer !== undefined),
      signal: look.signal,
    })),
  ];
}

/** The instances of one sandbox, of whatever generation. Of one that nobody knows, any installation may be the owner. */
export async function instancesOf(sandbox: SandboxRef, look: Look): Promise<InstanceRef[]> {
  const found = (await allInstances(await listContainers(look), look)).filter(
    ({ ref, legacy }) =>
      ref.sandboxId === sandbox.sandboxId && (legacy || ref.installationId === sandbox.installationId),
  );
  return found.map(({ ref }) => ref);
}

/** Containers are listed first: one that is launched meanwhile has had its directory before. */
async function allInstances(containers: readonly ListedContainer[], look: Look): Promise<FoundInstance[]> {
  const found = (await Promise.all(containers.map((one) => foundBy(one, look)))).filter(
    (one) => one !== undefined,
  );
  const known = new Set(found.map(({ ref }) => containerName(ref)));
  const alone = (await inDirectories(look)).filter(({ ref }) => !known.has(containerName(ref)));
  return [...found, ...alone];
}

async function listContainers({ api, signal }: Look): Promise<ListedContainer[]> {
  const query = { all: "1", filters: JSON.stringify({ label: [SCHEMA_LABEL] }) };
  return (
    (await api.json<ListedContainer[]>({ method: "GET", path: "/containers/json", query, signal })) ?? []
  );
}

/**
 * `undefined` if it only has our labels: somebody started it from an image that was made of one of ours. Or if it is a
 * part of a disk.
 */
async function foundBy(container: ListedContainer, look: Look): Promise<FoundInstance | undefined> {
  const { Names, Labels, Created } = container;
  const name = (Names[0] ?? "").slice(1);
  const named = parseContainerName(name);
  const generation = named?.generation;
  if (named === undefined || generation === undefined) return undefined;
  if (await isWaiting(container, look)) return undefined;
  const createdAt = Created * 1000;
  const madeFor = readInstanceLabels(name, Labels ?? {});
  const marker = madeFor && (await inhabitantOf(madeFor, { ...madeFor.ref, generation }, look.layout));
  if (marker === undefined) return { ...(await legacy({ ...named, generation }, look)), createdAt };
  const { ref, lifetimeSeconds, fence } = marker;
  // Of one that took the container over: the container itself may be much older.
  const bornAt = madeFor?.ref.generation === generation ? createdAt : marker.createdAt;
  return { kind: "instance", ref, createdAt: bornAt, lifetimeSeconds, fence, legacy: false };
}

/** `undefined` of one that is no part of a disk. */
async function layerIn(
  container: ListedContainer,
  look: Look,
): Promise<Omit<DiskMarker, "part"> | undefined> {
  const { Names, Labels } = container;
  const madeFor = readInstanceLabels((Names[0] ?? "").slice(1), Labels ?? {});
  if (madeFor === undefined || !(await isWaiting(container, look))) return undefined;
  const { installationId, sandboxId } = madeFor.ref;
  return { ref: { installationId, sandboxId }, createdAt: madeFor.createdAt };
}

/** Those that have a directory and perhaps no container: a launch was interrupted there, or a stop. */
async function inDirectories(look: Look): Promise<FoundInstance[]> {
  const names = await namesOnDisk(look.layout);
  const found = names.map(async (named): Promise<FoundInstance | undefined> => {
    const inhabitant = await readInhabitant(look.layout, named);
    if (inhabitant.kind === "nobody") return undefined;
    if (inhabitant.kind === "unknown") return legacy(named, look);
    const { ref, createdAt, lifetimeSeconds, fence } = inhabitant.identity;
    return { kind: "instance", ref, createdAt, lifetimeSeconds, fence, legacy: false };
  });
  return (await Promise.all(found)).filter((one) => one !== undefined);
}

/** One of which only the name can be read; its sandbox's disk may say whose it is, else nobody takes it for its own. */
async function legacy(
  { sandboxId, generation, installation }: NamedBy & { installation?: string },
  { api, signal }: Look,
): Promise<FoundInstance> {
  const owner = await ownerOf(api, sandboxId, signal);
  const isOwners = installation === undefined || installation === shortInstallation(owner);
  const named = { installationId: isOwners ? owner : "", sandboxId, generation };
  const ref = { ...named, instanceId: legacyIdOf(containerName(named)) };
  return { kind: "instance", ref, createdAt: null, lifetimeSeconds: null, fence: null, legacy: true };
}
