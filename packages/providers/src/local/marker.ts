import type { InstanceRef } from "@holdfast/core";
import { isSafeId, nameOf } from "./name.ts";

/** What an instance says of itself: in its directory, and in its processes' arguments. Written once, at its launch. */
export interface Marker {
  readonly ref: InstanceRef;
  /** By this machine's clock. These three are `null` where a release wrote the marker that did not know them yet. */
  readonly createdAt: number | null;
  readonly lifetimeSeconds: number | null;
  readonly fence: number | null;
}

/** For a process, which also says in which data dir its directory is. */
export interface ProcessMarker extends Marker {
  readonly place: string | null;
}

export function printMarker({ ref, createdAt, lifetimeSeconds, fence, place }: ProcessMarker): string {
  return JSON.stringify({ ...ref, createdAt, lifetimeSeconds, fence, place });
}

/** `undefined` if it is none of ours: nobody but us writes it, so that is one of a time before there were any. */
export function parseMarker(text: string): ProcessMarker | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const { place } = value as { place?: unknown };
    return { ref: parseRef(value), ...parseFacts(value), place: typeof place === "string" ? place : null };
  } catch {
    return undefined;
  }
}

/** Throws on anything that is not one. */
export function parseRef(value: unknown): InstanceRef {
  const { installationId, sandboxId, instanceId, generation } = value as Record<keyof InstanceRef, unknown>;
  const wellFormed =
    typeof installationId === "string" &&
    typeof sandboxId === "string" &&
    isSafeId(sandboxId) &&
    typeof instanceId === "string" &&
    Number.isInteger(generation);
  if (!wellFormed) throw new TypeError("not an instance's identity");
  return { installationId, sandboxId, instanceId, generation: generation as number };
}

export function parseFacts(value: unknown): Omit<Marker, "ref"> {
  const { createdAt, lifetimeSeconds, fence } = value as Record<keyof Marker, unknown>;
  return {
    createdAt: numberOrNull(createdAt),
    lifetimeSeconds: numberOrNull(lifetimeSeconds),
    fence: numberOrNull(fence),
  };
}

export function sameInstance(a: InstanceRef, b: InstanceRef): boolean {
  return a.installationId === b.installationId && a.instanceId === b.instanceId && nameOf(a) === nameOf(b);
}

function numberOrNull(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
