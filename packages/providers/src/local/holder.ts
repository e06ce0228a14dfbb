import type { InstanceRef } from "@holdfast/core";
import { findHere } from "./here.ts";
import { type Identity, readInhabitant } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { type Marker, sameInstance } from "./marker.ts";
import type { NamedBy } from "./name.ts";

/** Whose a name is, by its directory, or where that does not tell by its processes. */
export type Holder =
  | { readonly kind: "nobody" }
  | { readonly kind: "known"; readonly marker: Marker; readonly identity: Identity | undefined }
  /** There is one, and nobody can say which: it is seen, it blocks, it is stopped, and it is never used again. */
  | { readonly kind: "unknown" };

export async function holderOf(layout: Layout, named: NamedBy): Promise<Holder> {
  const inhabitant = await readInhabitant(layout, named);
  if (inhabitant.kind === "known") {
    const { identity } = inhabitant;
    return { kind: "known", marker: identity, identity };
  }
  const running = await findHere(layout, named);
  const marker = running.find((one) => one.marker !== undefined)?.marker;
  if (marker !== undefined) return { kind: "known", marker, identity: undefined };
  return { kind: running.length > 0 ? "unknown" : inhabitant.kind };
}

/** Whether what there is under this name, if anything, may be taken for that instance. */
export function mayBe(holder: Holder, ref: InstanceRef): boolean {
  return holder.kind !== "known" || sameInstance(holder.marker.ref, ref);
}
