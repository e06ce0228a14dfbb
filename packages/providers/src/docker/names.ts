import { createHash } from "node:crypto";
import type { InstanceRef } from "@holdfast/core";
import { assertSafeId, isSafeId } from "../local/name.ts";

/** The parts of a disk: one volume each, with where it is seen inside. */
export const diskParts = ["workspace", "home", "state"] as const;
export type DiskPart = (typeof diskParts)[number];

/** What a container's name says. */
export interface NamedContainer {
  readonly sandboxId: string;
  readonly generation: number;
  /** The first letters of a hash of its installation's id. */
  readonly installation: string;
}

const CONTAINER = /^hf-(.+)-g(\d{1,15})-([0-9a-f]{8})$/;

/** Docker lets one container have a name: two creates of one generation meet here. */
export function containerName({
  installationId,
  sandboxId,
  generation,
}: Omit<InstanceRef, "instanceId">): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-g${generation}-${shortInstallation(installationId)}`;
}

/** `undefined` if nothing of ours can be called so. */
export function parseContainerName(name: string): NamedContainer | undefined {
  const [, sandboxId = "", generation, installation = ""] = CONTAINER.exec(name) ?? [];
  return isSafeId(sandboxId) ? { sandboxId, generation: Number(generation), installation } : undefined;
}

export function volumeName(sandboxId: string, part: DiskPart): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-${part}`;
}

/** For people who look at a list of containers; who an instance is, is in its labels. */
export function shortInstallation(installationId: string): string {
  return createHash("sha256").update(installationId).digest("hex").slice(0, 8);
}
