import { chmod, lstat, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { DiskObservation, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode, writeDurably } from "./atomic-file.ts";
import { claimUid, freeUid } from "./host-user.ts";
import { assertSafeId, listOrNothing } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { makeDir } from "./owned-files.ts";
import { exists, removeTree } from "./remove-tree.ts";

/** What persists of a sandbox between its instances. */
export interface Disk {
  readonly dir: string;
  readonly ref: SandboxRef;
  readonly uid: number;
}

/** The parts of a disk; the sandbox's user owns them, and nobody else may look in. */
const PARTS = ["workspace", "home", "state"] as const;

/** Makes the disk, or finds the one that is there. A half-made one has another name and is made again. */
export async function ensureDisk(layout: Layout, ref: SandboxRef): Promise<Disk> {
  const found = await readDisk(layout, ref.sandboxId);
  if (found !== undefined) return openUp(ownDisk(found, ref));
  const uid = await claimUid(layout, ref.sandboxId);
  const draft = draftDir(layout, ref.sandboxId);
  await removeTree(draft);
  await makeDir(draft, { mode: 0o711 });
  for (const part of PARTS) await makeDir(join(draft, part), { mode: 0o700, uid });
  const { installationId, sandboxId } = ref;
  await writeDurably(join(draft, "disk.json"), JSON.stringify({ installationId, sandboxId, uid }));
  await rename(draft, diskDir(layout, sandboxId));
  return { dir: diskDir(layout, sandboxId), ref: { installationId, sandboxId }, uid };
}

/**
 * The work inside owns the parts and may have locked them, by mistake or not; the keeper could never start on them
 * again. The parts themselves cannot have been replaced: the directory that they are in is not seen inside.
 */
async function openUp(disk: Disk): Promise<Disk> {
  for (const part of PARTS) {
    const path = join(disk.dir, part);
    const { mode } = await lstat(path);
    if ((mode & OWNER_MAY_ALL) !== OWNER_MAY_ALL) await chmod(path, (mode & 0o7777) | OWNER_MAY_ALL);
  }
  return disk;
}

const OWNER_MAY_ALL = 0o700;

/** Nothing may run on it any more; the caller has made sure. May be called twice. */
export async function deleteDisk(layout: Layout, ref: SandboxRef): Promise<DiskObservation> {
  const disk = await readDisk(layout, ref.sandboxId);
  const dir = diskDir(layout, ref.sandboxId);
  if (disk !== undefined && disk.ref.installationId !== ref.installationId) {
    return { state: "absent", detail: `${dir} belongs to another installation and was left alone` };
  }
  const draft = draftDir(layout, ref.sandboxId);
  await removeTree(draft);
  if (disk !== undefined) {
    // While disk.json is in its place, an interrupted removal still knows whose disk it was.
    for (const part of PARTS) await removeTree(join(dir, part));
    await rename(dir, draft);
    await removeTree(draft);
  }
  await freeUid(layout, ref.sandboxId);
  return { state: "absent", detail: `${dir} does not exist` };
}

export async function listDisks(layout: Layout): Promise<Disk[]> {
  const disks: Disk[] = [];
  for (const name of await listOrNothing(layout.sandboxes)) {
    if (name.startsWith(".")) continue;
    const disk = await readDisk(layout, name);
    if (disk !== undefined) disks.push(disk);
  }
  return disks;
}

function diskDir(layout: Layout, sandboxId: string): string {
  assertSafeId(sandboxId);
  return join(layout.sandboxes, sandboxId);
}

function draftDir(layout: Layout, sandboxId: string): string {
  return join(layout.sandboxes, `.new-${sandboxId}`);
}

async function readDisk(layout: Layout, sandboxId: string): Promise<Disk | undefined> {
  const dir = diskDir(layout, sandboxId);
  try {
    const { installationId, uid } = JSON.parse(await readFile(join(dir, "disk.json"), "utf8"));
    return { dir, ref: { installationId, sandboxId }, uid };
  } catch (error) {
    if (isCode(error, "ENOENT") && !(await exists(dir))) return undefined;
    throw new HoldfastError("internal", `cannot read whose disk ${dir} is`, {
      cause: error,
      hint: "Look at disk.json there; nothing was changed.",
    });
  }
}

function ownDisk(disk: Disk, ref: SandboxRef): Disk {
  if (disk.ref.installationId === ref.installationId) return disk;
  throw new HoldfastError("already_exists", `the disk ${disk.dir} belongs to another installation`, {
    hint: "Give each installation its own data dir.",
    started: "no",
  });
}
