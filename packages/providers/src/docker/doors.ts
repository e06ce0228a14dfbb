import { mkdir, readlink, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxRef } from "@holdfast/core";
import { isCode } from "../local/atomic-file.ts";
import type { Layout } from "../local/layout.ts";
import { assertSafeId } from "../local/name.ts";
import { removeTree } from "../local/remove-tree.ts";

/**
 * What a container is bound to is fixed when it is made, and it may live through many generations and releases. So it is
 * bound to links in a directory of the sandbox's own, which a launch points at what is of that generation: its run
 * directory, and the keeper's bundle. The daemon follows them at each start, and only then.
 */
export interface Doors {
  readonly run: string;
  readonly bundle: string;
}

export function doorsOf(layout: Layout, ref: SandboxRef): Doors {
  const dir = doorsDir(layout, ref);
  return { run: join(dir, "run"), bundle: join(dir, "bundle") };
}

/** May be called twice. */
export async function pointDoors(layout: Layout, ref: SandboxRef, to: Doors): Promise<void> {
  await mkdir(doorsDir(layout, ref), { recursive: true, mode: 0o711 });
  const doors = doorsOf(layout, ref);
  await point(doors.run, to.run);
  await point(doors.bundle, to.bundle);
}

/** Of a sandbox that has no container any more. May be called twice. */
export async function removeDoors(layout: Layout, ref: SandboxRef): Promise<void> {
  await removeTree(doorsDir(layout, ref));
}

function doorsDir(layout: Layout, { sandboxId }: SandboxRef): string {
  assertSafeId(sandboxId);
  return join(layout.sandboxes, sandboxId);
}

async function point(link: string, target: string): Promise<void> {
  if ((await targetOf(link)) === target) return;
  const draft = `${link}.new`;
  await removeTree(draft);
  await symlink(target, draft);
  await rename(draft, link);
}

async function targetOf(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (error) {
    if (isCode(error, "ENOENT", "EINVAL")) return undefined;
    throw error;
  }
}
