import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";

/** What a physical name says: all that is left where nothing else can be read. */
export type NamedBy = Pick<InstanceRef, "sandboxId" | "generation">;

/** Ids become file names and arguments: nothing that a path could mean something by gets in. */
const SAFE_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;
const NAME = /^hf-(.+)-g(\d{1,15})$/;

/** The instance's name: of its directory, in its control groups, and in the arguments of each of our own processes. */
export function nameOf({ sandboxId, generation }: NamedBy): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-g${generation}`;
}

/** `undefined` if nothing of ours can be called so. */
export function parseName(name: string): NamedBy | undefined {
  const [, sandboxId = "", generation] = NAME.exec(name) ?? [];
  const named = { sandboxId, generation: Number(generation) };
  return isSafeId(sandboxId) && nameOf(named) === name ? named : undefined;
}

export function isSafeId(sandboxId: string): boolean {
  return SAFE_ID.test(sandboxId);
}

export function assertSafeId(sandboxId: string): void {
  if (isSafeId(sandboxId)) return;
  throw new HoldfastError("invalid_argument", `"${sandboxId}" cannot be the id of a sandbox`, {
    hint: "Use 1 to 100 letters, digits, _ . -, beginning with a letter or a digit.",
  });
}

/** How something is called of which only the name can be read. It can be observed and stopped, and never launched. */
export function legacyIdOf(name: string): string {
  return `legacy:${name}`;
}
