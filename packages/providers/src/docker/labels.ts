import type { InstanceRef, SandboxRef } from "@holdfast/core";
import { type Marker, parseRef } from "../local/marker.ts";
import { type DiskPart, diskParts, parseContainerName, shortInstallation } from "./names.ts";

/** On everything that we make, and on nothing else: lists are asked for by it. */
export const SCHEMA_LABEL = "holdfast.schema";
const SCHEMA = "1";
const SPEC_LABEL = "holdfast.spec";
const IMAGE_LABEL = "holdfast.image";
/** On a container that has a layer of another below it, so that it is worth keeping though it never ran. */
export const HAS_LAYER_LABEL = "holdfast.has-layer";
export const INSTALLATION_LABEL = "holdfast.installation";

type Labels = Readonly<Record<string, string>>;

/** Labels are seen by everybody who may use the daemon: no secret is in them, nor the environment. */
export function instanceLabels(
  ref: InstanceRef,
  facts: Omit<Marker, "ref"> & { spec: string; image: string },
): Labels {
  return {
    [SCHEMA_LABEL]: SCHEMA,
    [INSTALLATION_LABEL]: ref.installationId,
    "holdfast.sandbox": ref.sandboxId,
    "holdfast.instance": ref.instanceId,
    "holdfast.generation": String(ref.generation),
    "holdfast.fence": String(facts.fence),
    "holdfast.lifetime": String(facts.lifetimeSeconds),
    "holdfast.created": String(facts.createdAt),
    [SPEC_LABEL]: facts.spec,
    [IMAGE_LABEL]: facts.image,
  };
}

export function networkLabels(installationId: string): Labels {
  return { [SCHEMA_LABEL]: SCHEMA, [INSTALLATION_LABEL]: installationId };
}

/**
 * Which instance a container was made for; later ones may have taken it over, because labels never change. `undefined`
 * if they are not those of a container with this name. An image that was made from a container of ours has the labels
 * too, and so has every container that somebody starts from it; but none has the name.
 */
export function readInstanceLabels(name: string, labels: Labels): Marker | undefined {
  const ref = refIn(labels);
  const named = parseContainerName(name);
  if (ref === undefined || named?.sandboxId !== ref.sandboxId) return undefined;
  if (named.installation !== shortInstallation(ref.installationId)) return undefined;
  return {
    ref,
    createdAt: numberIn(labels, "holdfast.created"),
    lifetimeSeconds: numberIn(labels, "holdfast.lifetime"),
    fence: numberIn(labels, "holdfast.fence"),
  };
}

/** What it was made from, in a few letters. */
export function specIn(labels: Labels | null): string | undefined {
  return labels?.[SPEC_LABEL];
}

/** By the name that it had for whoever asked for it; also where a snapshot's own files are in it, too. */
export function imageIn(labels: Labels | null): string | undefined {
  return labels?.[IMAGE_LABEL];
}

export function diskLabels(ref: SandboxRef, options: { part: DiskPart; createdAt: number }): Labels {
  return {
    [SCHEMA_LABEL]: SCHEMA,
    [INSTALLATION_LABEL]: ref.installationId,
    "holdfast.sandbox": ref.sandboxId,
    "holdfast.part": options.part,
    "holdfast.created": String(options.createdAt),
  };
}

export interface DiskMarker {
  readonly ref: SandboxRef;
  readonly part: DiskPart;
  readonly createdAt: number | null;
}

/** `undefined` if they do not say whose volume it is. */
export function readDiskLabels(labels: Labels): DiskMarker | undefined {
  const installationId = labels[INSTALLATION_LABEL];
  const sandboxId = labels["holdfast.sandbox"];
  const part = diskParts.find((one) => one === labels["holdfast.part"]);
  if (installationId === undefined || sandboxId === undefined || part === undefined) return undefined;
  return { ref: { installationId, sandboxId }, part, createdAt: numberIn(labels, "holdfast.created") };
}

function refIn(labels: Labels): InstanceRef | undefined {
  try {
    return parseRef({
      installationId: labels[INSTALLATION_LABEL],
      sandboxId: labels["holdfast.sandbox"],
      instanceId: labels["holdfast.instance"],
      generation: numberIn(labels, "holdfast.generation"),
    });
  } catch {
    return undefined; // its caller says what that means
  }
}

function numberIn(labels: Labels, key: string): number | null {
  const text = labels[key];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
