import { constants } from "node:fs";
import { chmod, copyFile, mkdir, readdir, rename, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { withFileLock } from "./file-lock.ts";
import { listOrNothing, namesOnDisk, readInhabitant } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { exists, removeTree } from "./remove-tree.ts";

/** No sandbox can be called so, so nobody who works on one has to wait. */
const LOCK_KEY = "the keeper's bundles";
const DRAFT = ".new-";

/**
 * Puts the keeper's bundle where it outlives an upgrade of the server and where a sandbox's user may read it. The
 * bundle's directory is named by its content, so a name that is there needs no second copy. Until `work` is done, which
 * writes down who uses it, no server of another version takes it for unused.
 */
export async function withBundle<T>(
  options: { layout: Layout; bundle: string; signal: AbortSignal },
  work: (installed: string) => Promise<T>,
): Promise<T> {
  const { layout, bundle, signal } = options;
  const lock = { file: layout.locks, key: LOCK_KEY, signal };
  const installed = join(layout.keepers, basename(bundle));
  for (;;) {
    const used = await withFileLock({ ...lock, mode: "shared" }, async () =>
      exists(installed) ? { result: await work(installed) } : undefined,
    );
    if (used !== undefined) return used.result;
    await withFileLock({ ...lock, mode: "alone" }, () => install(layout, bundle, installed));
  }
}

async function install(layout: Layout, bundle: string, installed: string): Promise<void> {
  if (exists(installed)) return;
  await removeUnused(layout);
  const draft = join(layout.keepers, `${DRAFT}${basename(bundle)}`);
  try {
    await copyReadable(bundle, draft);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    throw new HoldfastError("launch_failed", `the keeper's bundle ${bundle} is not there`, {
      cause: error,
      hint: "Build it with: npm run setup",
      started: "no",
    });
  }
  await rename(draft, installed);
}

/** Older bundles are 100 MB each: they go when no instance was launched with them. So do half-made copies. */
async function removeUnused(layout: Layout): Promise<void> {
  const inhabitants = await Promise.all(
    (await namesOnDisk(layout)).map((named) => readInhabitant(layout, named)),
  );
  // One of which nothing can be read may use any of them.
  const keepAll = inhabitants.some(({ kind }) => kind === "unknown");
  const used = new Set(inhabitants.map((one) => (one.kind === "known" ? one.identity.bundle : undefined)));
  for (const name of await listOrNothing(layout.keepers)) {
    const isNeeded = used.has(name) || (keepAll && !name.startsWith(DRAFT));
    if (!isNeeded) await removeTree(join(layout.keepers, name));
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
