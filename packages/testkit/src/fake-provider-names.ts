import type { InstanceRef, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";

/** The fake's own, so that a mistake in a real provider's names does not hide in the double. */
export function nameOf({ sandboxId, generation }: Pick<InstanceRef, "sandboxId" | "generation">): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-g${generation}`;
}

export function assertSafeId(sandboxId: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(sandboxId)) return;
  throw new HoldfastError("invalid_argument", `"${sandboxId}" cannot be the id of a sandbox`);
}

export function isSameSandbox(a: SandboxRef, b: SandboxRef): boolean {
  return a.installationId === b.installationId && a.sandboxId === b.sandboxId;
}

export function isSameInstance(a: InstanceRef, b: InstanceRef): boolean {
  return isSameSandbox(a, b) && a.instanceId === b.instanceId && a.generation === b.generation;
}
