import type { DiskObservation, DiskReport, FoundDisk, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import type { Volume, VolumeList } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { placeOfPart } from "./inside.ts";
import { type DiskMarker, diskLabels, readDiskLabels, SCHEMA_LABEL } from "./labels.ts";
import { findLayer } from "./layer.ts";
import { type DiskPart, diskContainerName, diskParts, volumeName } from "./names.ts";
import { removeContainer } from "./remove-container.ts";

/** What there is of each part. */
export type Volumes = Readonly<Record<DiskPart, Volume | undefined>>;

export async function findVolumes(api: DockerApi, ref: SandboxRef, signal: AbortSignal): Promise<Volumes> {
  const found = await ofEachPart((part) => inspectVolume(api, volumeName(ref.sandboxId, part), signal));
  return Object.fromEntries(diskParts.map((part, i) => [part, found[i]])) as Record<
    DiskPart,
    Volume | undefined
  >;
}

/** What is there of the disk, before anything is made of what is missing. `layer`: whether the container's own files are. */
export function surveyDisk(volumes: Volumes, { layer }: { layer: boolean }): DiskReport {
  const missing = [
    ...(layer ? [] : ["the container's own files"]),
    ...diskParts.filter((part) => volumes[part] === undefined).map((part) => placeOfPart[part]),
  ];
  if (missing.length === 0) return { state: "kept", lost: [] };
  return missing.length > diskParts.length ? { state: "new", lost: [] } : { state: "partly", lost: missing };
}

/** Makes the volumes that were not found. May be called twice. */
export async function ensureDisk(
  api: DockerApi,
  ref: SandboxRef,
  { volumes, now, signal }: { volumes: Volumes; now: number; signal: AbortSignal },
): Promise<void> {
  await ofEachPart(async (part) => {
    const name = volumeName(ref.sandboxId, part);
    const labels = diskLabels(ref, { part, createdAt: now });
    const volume = volumes[part] ?? (await createVolume(api, { name, labels, signal }));
    if (!isOwn(volume, ref)) throw taken(volume);
  });
}

/** All at once. A failure is told when all have ended: nothing goes on behind the back of what comes next. */
async function ofEachPart<T>(work: (part: DiskPart) => Promise<T>): Promise<T[]> {
  const ended = await Promise.allSettled(diskParts.map(work));
  return ended.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}

/** The daemon answers with the volume that has the name, whoever made it meanwhile. */
async function createVolume(
  api: DockerApi,
  { name, labels, signal }: { name: string; labels: Volume["Labels"]; signal: AbortSignal },
): Promise<Volume> {
  const json = { Name: name, Labels: labels };
  try {
    const made = await api.json<Volume>({ method: "POST", path: "/volumes/create", json, signal });
    withoutLabels.delete(name);
    return made ?? json;
  } catch (error) {
    if (refusalOf(error) !== undefined) {
      withoutLabels.add(name);
      // It may be too full for that, too; then it goes with the disk.
      await removeVolume(api, name, AbortSignal.timeout(UNDO_TIMEOUT_MS)).catch(() => {});
    }
    throw error;
  }
}

/**
 * On a full disk Docker keeps a volume whose labels it could not write, and nobody would know whose it is: these are
 * the ones that we have asked for, where there was none of the name.
 */
const withoutLabels = new Set<string>();

/** The removal of an empty volume. */
const UNDO_TIMEOUT_MS = 5_000;

/** Nothing may run on it any more; the caller has made sure. May be called twice. */
export async function deleteDisk(
  ref: SandboxRef,
  { api, layout, signal }: { api: DockerApi; layout: Layout; signal: AbortSignal },
): Promise<DiskObservation> {
  const layer = await findLayer(ref, { api, layout, signal });
  if (layer !== undefined) await removeContainer(api, layer.Id, signal);
  const seen = await ofEachPart((part) => deletePart(api, ref, { part, signal }));
  const left = seen.find(({ isGone }) => !isGone);
  if (left !== undefined) return { state: "present", detail: left.detail };
  const details = [`${diskContainerName(ref)} does not exist`, ...seen.map(({ detail }) => detail)];
  return { state: "absent", detail: `Docker's container and volumes: ${details.join(", ")}` };
}

async function deletePart(
  api: DockerApi,
  ref: SandboxRef,
  { part, signal }: { part: DiskPart; signal: AbortSignal },
): Promise<{ isGone: boolean; detail: string }> {
  const name = volumeName(ref.sandboxId, part);
  const volume = await inspectVolume(api, name, signal);
  if (volume === undefined) return { isGone: true, detail: `${name} does not exist` };
  const isUnfinished = withoutLabels.has(name) && Object.keys(volume.Labels ?? {}).length === 0;
  if (!isOwn(volume, ref) && !isUnfinished) {
    return { isGone: true, detail: `${name} is somebody else's and was left alone` };
  }
  await removeVolume(api, name, signal);
  const isGone = (await inspectVolume(api, name, signal)) === undefined;
  if (isGone) withoutLabels.delete(name);
  return {
    isGone,
    detail: isGone ? `${name} does not exist` : `the volume ${name} is still there after its removal`,
  };
}

/** Every volume with our label, and the containers that wait, whoever's; complete, or an error. */
export async function listDisks(
  api: DockerApi,
  { layers, signal }: { layers: readonly Omit<DiskMarker, "part">[]; signal: AbortSignal },
): Promise<FoundDisk[]> {
  const list = await api.json<VolumeList>({
    method: "GET",
    path: "/volumes",
    query: { filters: JSON.stringify({ label: [SCHEMA_LABEL] }) },
    signal,
  });
  const warnings = list?.Warnings ?? [];
  if (list === undefined || warnings.length > 0) {
    throw new HoldfastError("unavailable", `Docker cannot list all its volumes: ${warnings.join("; ")}`, {
      hint: "Nothing is concluded from a list that is not complete.",
    });
  }
  const volumes = (list.Volumes ?? []).map(({ Labels }) => readDiskLabels(Labels ?? {}));
  return oneForEachSandbox([...volumes, ...layers]);
}

function oneForEachSandbox(markers: readonly (Omit<DiskMarker, "part"> | undefined)[]): FoundDisk[] {
  const disks = new Map<string, FoundDisk>();
  for (const marker of markers) {
    if (marker === undefined) continue;
    const key = `${marker.ref.installationId} ${marker.ref.sandboxId}`;
    const before = disks.get(key)?.createdAt ?? marker.createdAt;
    const createdAt =
      before === null || marker.createdAt === null ? null : Math.min(before, marker.createdAt);
    disks.set(key, { kind: "disk", ref: marker.ref, createdAt });
  }
  return [...disks.values()];
}

/** Which installation the sandbox's disk belongs to; "" if that cannot be told, which is nobody's. */
export async function ownerOf(api: DockerApi, sandboxId: string, signal: AbortSignal): Promise<string> {
  const volume = await inspectVolume(api, volumeName(sandboxId, "workspace"), signal);
  return readDiskLabels(volume?.Labels ?? {})?.ref.installationId ?? "";
}

async function removeVolume(api: DockerApi, name: string, signal: AbortSignal): Promise<void> {
  try {
    await api.request({ method: "DELETE", path: `/volumes/${name}`, expect: [404], signal });
  } catch (cause) {
    if (refusalOf(cause) !== 409) throw cause;
    throw new HoldfastError(
      "wrong_state",
      `cannot remove the disk: a container still uses the volume ${name}`,
      {
        hint: `Look for it: docker ps -a --filter volume=${name}`,
        cause,
      },
    );
  }
}

function inspectVolume(api: DockerApi, name: string, signal: AbortSignal): Promise<Volume | undefined> {
  return api.json<Volume>({ method: "GET", path: `/volumes/${name}`, expect: [404], signal });
}

function isOwn({ Labels }: Volume, ref: SandboxRef): boolean {
  const marker = readDiskLabels(Labels ?? {});
  return marker?.ref.installationId === ref.installationId && marker.ref.sandboxId === ref.sandboxId;
}

function taken({ Name }: Volume): HoldfastError {
  return new HoldfastError("already_exists", `the volume ${Name} is somebody else's`, {
    hint: "It belongs to another installation or was made by hand; it was left alone. Use another sandbox id, or remove it.",
    started: "no",
  });
}
