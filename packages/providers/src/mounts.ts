import { realpath, stat } from "node:fs/promises";
import { HoldfastError, isWithin, type Mount } from "@holdfast/protocol";
import { isCode } from "./local/atomic-file.ts";

/** A directory that the operator lets sandboxes see. */
export interface AllowedMount {
  readonly dir: string;
  readonly readOnly: boolean;
}

export interface MountRules {
  readonly allowed: readonly AllowedMount[];
  /** Ours: with it a sandbox could take over the server. */
  readonly dataDir: string;
  /** Whether the work is the host's root, as far as files are concerned. */
  readonly asRoot: boolean;
}

/** As the operator wrote it: `DIR` or `DIR:ro`. */
export function printAllowed({ dir, readOnly }: AllowedMount): string {
  return readOnly ? `${dir}:ro` : dir;
}

/**
 * The mounts with their sources as they really are, links followed: what counts is where a path leads, not how it is
 * called. Whoever may write to an allowed directory could put a link there between this look and the mount, so the
 * operator is told to allow writing only where nobody else may write.
 */
export async function resolveMounts(mounts: readonly Mount[] = [], rules: MountRules): Promise<Mount[]> {
  const allowed = await Promise.all(
    rules.allowed.map(async (one) => ({ ...one, dir: (await real(one.dir)) ?? one.dir })),
  );
  const dataDir = (await real(rules.dataDir)) ?? rules.dataDir;
  return Promise.all(mounts.map((mount) => resolveOne(mount, { ...rules, allowed, dataDir })));
}

async function resolveOne(mount: Mount, rules: MountRules): Promise<Mount> {
  const source = await real(mount.source);
  if (source === undefined) {
    throw refusal(mount, "it is not there, or this server may not look at it", "Make it, or mount another.");
  }
  const hosts = rules.allowed.filter(({ dir }) => isWithin(source, dir));
  if (hosts.length === 0) {
    const leads = source === mount.source ? "" : ` (it leads to ${source})`;
    const may = rules.allowed.map(printAllowed).join(", ") || "nothing";
    throw refusal(mount, `the operator does not allow it${leads}`, `What may be mounted is in: ${may}`);
  }
  if (mount.writable && hosts.every(({ readOnly }) => readOnly)) {
    throw refusal(mount, "the operator allows only reading it", "Leave out `writable`.");
  }
  if (mount.writable && rules.asRoot) {
    throw refusal(
      mount,
      "root's work could leave programs there that make anybody on the host root",
      "Leave out `writable`, or run as another user.",
    );
  }
  if (isWithin(source, rules.dataDir) || isWithin(rules.dataDir, source)) {
    throw refusal(mount, "the server's own data is there", "Mount something beside it.");
  }
  await assertFiles(source, mount);
  return { ...mount, source };
}

/** Not a socket, behind which a service of the host may do what its client says, nor a device. */
async function assertFiles(source: string, mount: Mount): Promise<void> {
  const found = await stat(source);
  if (found.isDirectory() || found.isFile()) return;
  throw refusal(mount, "it is neither a directory nor a file", "Mount a directory.");
}

/** `undefined` if there is no such thing for us. */
async function real(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP")) return undefined;
    throw error;
  }
}

function refusal({ source }: Mount, why: string, hint: string): HoldfastError {
  return new HoldfastError("forbidden", `${source} cannot be mounted: ${why}`, { hint, started: "no" });
}
