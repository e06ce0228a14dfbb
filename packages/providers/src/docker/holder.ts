import type { InstanceRef } from "@holdfast/core";
import { readInhabitant } from "../local/identity.ts";
import type { Layout } from "../local/layout.ts";
import { type Marker, sameInstance } from "../local/marker.ts";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { readInstanceLabels, SCHEMA_LABEL } from "./labels.ts";
import { containerName } from "./names.ts";

/** Whose a container's name is. */
export type Holder =
  | { readonly kind: "nobody" }
  | { readonly kind: "known"; readonly marker: Marker; readonly container: Container }
  /** It has our label, and nobody can say which it is: it is seen, it blocks, it is stopped, and it is never used again. */
  | { readonly kind: "unknown"; readonly container: Container }
  /** It has nothing of ours but the name: it blocks, and it is never touched. */
  | { readonly kind: "foreign"; readonly container: Container };

export async function holderOf(
  ref: InstanceRef,
  { api, layout, signal }: { api: DockerApi; layout: Layout; signal: AbortSignal },
): Promise<Holder> {
  const name = containerName(ref);
  const container = await inspectContainer(api, name, signal);
  if (container === undefined) return { kind: "nobody" };
  const labels = container.Config.Labels ?? {};
  if (labels[SCHEMA_LABEL] === undefined) return { kind: "foreign", container };
  const madeFor = readInstanceLabels(name, labels);
  const marker =
    madeFor && (await inhabitantOf(madeFor, { ...madeFor.ref, generation: ref.generation }, layout));
  return marker === undefined ? { kind: "unknown", container } : { kind: "known", marker, container };
}

/**
 * Who lives in a container of ours under the name of this generation. A directory says so, which is written before the
 * container gets the name; the labels only say it of the one that the container was made for.
 */
export async function inhabitantOf(
  madeFor: Marker,
  { installationId, sandboxId, generation }: Omit<InstanceRef, "instanceId">,
  layout: Layout,
): Promise<Marker | undefined> {
  const inhabitant = await readInhabitant(layout, { sandboxId, generation });
  const isKnown = inhabitant.kind === "known" && inhabitant.identity.ref.installationId === installationId;
  if (isKnown) return inhabitant.identity;
  return madeFor.ref.generation === generation ? madeFor : undefined;
}

/** Whether what there is under this name, if anything, may be taken for that instance. */
export function mayBe(holder: Holder, ref: InstanceRef): boolean {
  if (holder.kind === "foreign") return false;
  return holder.kind !== "known" || sameInstance(holder.marker.ref, ref);
}

/** By name or by id; `undefined` if the daemon knows none. */
export function inspectContainer(
  api: DockerApi,
  which: string,
  signal: AbortSignal,
): Promise<Container | undefined> {
  return api.json<Container>({ method: "GET", path: `/containers/${which}/json`, expect: [404], signal });
}
