import { stat } from "node:fs/promises";
import type { Found, FoundInstance, InstanceRef, SandboxRef } from "@holdfast/core";
import { isCode } from "./atomic-file.ts";
import { listDisks, ownerOf } from "./disk.ts";
import { findKeepersHere } from "./here.ts";
import { instanceDir, namesOnDisk, readInhabitant } from "./identity.ts";
import type { Layout } from "./layout.ts";
import type { Marker } from "./marker.ts";
import { legacyIdOf, type NamedBy, nameOf } from "./name.ts";

/** Everything in this data dir that is ours, of whichever installation: instances by directory or by keeper, and disks. */
export async function discoverAll(layout: Layout): Promise<Found[]> {
  return [...(await allInstances(layout)), ...(await listDisks(layout))];
}

/** The instances of one sandbox, of whatever generation. Of one that nobody knows, any installation may be the owner. */
export async function instancesOf(sandbox: SandboxRef, layout: Layout): Promise<InstanceRef[]> {
  const found = (await allInstances(layout)).filter(
    ({ ref, legacy }) =>
      ref.sandboxId === sandbox.sandboxId && (legacy || ref.installationId === sandbox.installationId),
  );
  return found.map(({ ref }) => ref);
}

/** By directory and by running keeper, so that one whose directory somebody has removed or spoilt is found, too. */
async function allInstances(layout: Layout): Promise<FoundInstance[]> {
  // Keepers first: one that is launched meanwhile has had its directory before.
  const keepers = await findKeepersHere(layout);
  const known = new Map<string, FoundInstance>();
  const unknown = new Map<string, NamedBy>();
  const note = (named: NamedBy, marker: Marker | undefined): void => {
    if (marker === undefined) unknown.set(nameOf(named), named);
    else known.set(`${nameOf(named)} ${marker.ref.instanceId} ${marker.ref.installationId}`, foundBy(marker));
  };
  for (const { named, marker } of keepers) note(named, marker);
  for (const named of await namesOnDisk(layout)) {
    const inhabitant = await readInhabitant(layout, named);
    if (inhabitant.kind !== "nobody")
      note(named, inhabitant.kind === "known" ? inhabitant.identity : undefined);
  }
  for (const { ref } of known.values()) unknown.delete(nameOf(ref));
  return [...known.values(), ...(await Promise.all([...unknown.values()].map((one) => legacy(layout, one))))];
}

function foundBy({ ref, createdAt, lifetimeSeconds, fence }: Marker): FoundInstance {
  return { kind: "instance", ref, createdAt, lifetimeSeconds, fence, legacy: false };
}

/** One of which only the name can be read; its sandbox's disk may say whose it is. */
async function legacy(layout: Layout, { sandboxId, generation }: NamedBy): Promise<FoundInstance> {
  const installationId = await ownerOf(layout, sandboxId);
  const instanceId = legacyIdOf(nameOf({ sandboxId, generation }));
  return {
    kind: "instance",
    ref: { installationId, sandboxId, instanceId, generation },
    createdAt: await lastChange(instanceDir(layout, { sandboxId, generation })),
    lifetimeSeconds: null,
    fence: null,
    legacy: true,
  };
}

async function lastChange(dir: string): Promise<number | null> {
  try {
    return Math.floor((await stat(dir)).mtimeMs);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return null;
    throw error;
  }
}
