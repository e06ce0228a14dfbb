import { constants } from "node:fs";
import { chmod, copyFile, mkdir, readdir, rename, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { instanceDirs, listOrNothing, readIdentity } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { exists, removeTree } from "./remove-tree.ts";

/**
 * Puts the keeper's bundle where it outlives an upgrade of the server and where a sandbox's user may read it. The
 * bundle's directory is named by its content, so a name that is there needs no second copy. May be called twice, but
 * not twice at a time.
 */
export async function installBundle(layout: Layout, bundle: string): Promise<string> {
  const installed = join(layout.keepers, basename(bundle));
  if (await exists(installed)) return installed;
  await removeUnused(layout);
  const draft = join(layout.keepers, `.new-${basename(bundle)}`);
  try {
    await copyReadable(bundle, draft);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    throw new HoldfastError("provider_unavailable", `the keeper's bundle ${bundle} is not there`, {
      cause: error,
      hint: "Build it with: npm run setup",
      retryable: false,
    });
  }
  await rename(draft, installed);
  return installed;
}

/** Older bundles are 100 MB each: they go when no instance was launched with them. So do half-made copies. */
async function removeUnused(layout: Layout): Promise<void> {
  const identities = await Promise.all((await instanceDirs(layout)).map(readIdentity));
  const used = new Set(identities.map((identity) => identity?.bundle));
  for (const name of await listOrNothing(layout.keepers)) {
    if (!used.has(name)) await removeTree(join(layout.keepers, name));
  }
}

async function copyReadable(from: string, to: string): Promise<void> {
  if (!(await stat(from)).isDirectory()) {
    // Shares the blocks with the original where the file system can.
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await chmod(to, 0o755);
    return;
  }
  await mkdir(to);
  for (const entry of await readdir(from)) await copyReadable(join(from, entry), join(to, entry));
  await chmod(to, 0o755);
}
