import type { Found, FoundInstance, InstanceRef, SandboxRef } from "@holdfast/core";
import { namesOnDisk, readInhabitant } from "../local/identity.ts";
import type { Layout } from "../local/layout.ts";
import { legacyIdOf, type NamedBy } from "../local/name.ts";
import type { DockerApi } from "./api.ts";
import { listDisks, ownerOf } from "./disk.ts";
import type { ListedContainer } from "./engine-types.ts";
import { readInstanceLabels, SCHEMA_LABEL } from "./labels.ts";
import { containerName, parseContainerName, shortInstallation } from "./names.ts";

interface Look {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly signal: AbortSignal;
}

/** Everything of ours on this daemon and in this data dir, of whichever installation; complete, or an error. */
export async function discoverAll(look: Look): Promise<Found[]> {
  return [...(await allInstances(look)), ...(await listDisks(look.api, look.signal))];
}

/** The instances of one sandbox, of whatever generation. Of one that nobody knows, any installation may be the owner. */
export async function instancesOf(sandbox: SandboxRef, look: Look): Promise<InstanceRef[]> {
  const found = (await allInstances(look)).filter(
    ({ ref, legacy }) =>
      ref.sandboxId === sandbox.sandboxId && (legacy || ref.installationId === sandbox.installationId),
  );
  return found.map(({ ref }) => ref);
}

async function allInstances(look: Look): Promise<FoundInstance[]> {
  // Containers first: one that is launched meanwhile has had its directory before.
  const containers = await listContainers(look);
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

/** `undefined` if it only has our labels: somebody started it from an image that was made of one of ours. */
async function foundBy(
  { Names, Labels, Created }: ListedContainer,
  look: Look,
): Promise<FoundInstance | undefined> {
  const name = (Names[0] ?? "").slice(1);
  const createdAt = Created * 1000;
  const marker = readInstanceLabels(name, Labels ?? {});
  if (marker !== undefined) return { kind: "instance", ...marker, createdAt, legacy: false };
  const named = parseContainerName(name);
  if (named === undefined) return undefined;
  return { ...(await legacy(named, look)), createdAt };
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
