import { createHash } from "node:crypto";
import type { InstanceRef, SandboxRef } from "@holdfast/core";
import { assertSafeId, isSafeId } from "../local/name.ts";

/** The parts of a disk: one volume each, with where it is seen inside. */
export const diskParts = ["workspace", "home", "state"] as const;
export type DiskPart = (typeof diskParts)[number];

/** What a container's name says. */
export interface NamedContainer {
  readonly sandboxId: string;
  /** `undefined` of one that has ended and is a part of the sandbox's disk. */
  readonly generation: number | undefined;
  /** The first letters of a hash of its installation's id. */
  readonly installation: string;
}

const CONTAINER = /^hf-(.+)-(?:g(\d{1,15})|disk)-([0-9a-f]{8})$/;

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
  if (!isSafeId(sandboxId)) return undefined;
  return { sandboxId, generation: generation === undefined ? undefined : Number(generation), installation };
}

/** What a container is called while nothing runs in it: its files wait for the next generation. */
export function diskContainerName({ installationId, sandboxId }: SandboxRef): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-disk-${shortInstallation(installationId)}`;
}

export function volumeName(sandboxId: string, part: DiskPart): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-${part}`;
}

/** For people who look at a list of containers; who an instance is, is in its labels. */
export function shortInstallation(installationId: string): string {
  return createHash("sha256").update(installationId).digest("hex").slice(0, 8);
}
