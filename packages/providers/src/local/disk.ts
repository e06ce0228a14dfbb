import { renameSync } from "node:fs";
import { chmod, lstat, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DiskObservation, FoundDisk, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode, writeDurably } from "./atomic-file.ts";
import { claimUid, freeUid } from "./host-user.ts";
import { listOrNothing } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { assertSafeId, isSafeId } from "./name.ts";
import { makeDir } from "./owned-files.ts";
import { exists, removeTree } from "./remove-tree.ts";

/** What persists of a sandbox between its instances. */
export interface Disk {
  readonly dir: string;
  readonly ref: SandboxRef;
  readonly uid: number;
  readonly createdAt: number;
}

/** The parts of a disk; the sandbox's user owns them, and nobody else may look in. */
const PARTS = ["workspace", "home", "state"] as const;
/** Those that hold a user's files; `state` is the keeper's own. */
export const FILE_PARTS = ["workspace", "home"] as const;
/** Says whose it is. */
const RECORD = "disk.json";

/** Makes the disk, or finds the one that is there. A half-made one has another name and is made again. */
export async function ensureDisk(
  layout: Layout,
  ref: SandboxRef,
  { now, fill }: { now: number; fill?: (draft: Pick<Disk, "dir" | "uid">) => Promise<void> },
): Promise<Disk> {
  const found = await readDisk(layout, ref.sandboxId);
  if (found !== undefined) return openUp(ownDisk(found, ref));
  const uid = claimUid(layout, ref.sandboxId);
  const draft = draftDir(layout, ref.sandboxId);
  await removeTree(draft);
  makeDir(draft, { mode: 0o711 });
  for (const part of PARTS) makeDir(join(draft, part), { mode: 0o700, uid });
  await fill?.({ dir: draft, uid });
  const { installationId, sandboxId } = ref;
  const record = { installationId, sandboxId, uid, createdAt: now };
  await writeDurably(join(draft, RECORD), JSON.stringify(record));
  renameSync(draft, diskDir(layout, sandboxId));
  return { dir: diskDir(layout, sandboxId), ref: { installationId, sandboxId }, uid, createdAt: now };
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
    await removeTree(...PARTS.map((part) => join(dir, part)));
    await rename(dir, draft);
    await removeTree(draft);
  }
  freeUid(layout, ref.sandboxId);
  return { state: "absent", detail: `${dir} does not exist` };
}

/** Whose directories of this name are. Of one whose record makes no sense nobody knows the owner: then nobody may remove it. */
export async function listDisks(layout: Layout): Promise<FoundDisk[]> {
  const names = (await listOrNothing(layout.sandboxes)).filter(isSafeId);
  const disks = await Promise.all(names.map((sandboxId) => readRecord(layout, sandboxId)));
  return disks.flatMap((disk, i): FoundDisk[] => {
    if (disk.state === "absent") return [];
    const { ref, createdAt } = disk.state === "present" ? disk.disk : nobodys(names[i] ?? "");
    return [{ kind: "disk", ref, createdAt }];
  });
}

/** Which installation the sandbox's disk belongs to, if that can be told. */
export async function ownerOf(layout: Layout, sandboxId: string): Promise<string> {
  const disk = await readRecord(layout, sandboxId);
  return disk.state === "present" ? disk.disk.ref.installationId : UNKNOWN_INSTALLATION;
}

/** No installation is called so, and so none takes it for its own. */
const UNKNOWN_INSTALLATION = "";

function nobodys(sandboxId: string): Pick<FoundDisk, "ref" | "createdAt"> {
  return { ref: { installationId: UNKNOWN_INSTALLATION, sandboxId }, createdAt: null };
}

function diskDir(layout: Layout, sandboxId: string): string {
  assertSafeId(sandboxId);
  return join(layout.sandboxes, sandboxId);
}

const DRAFT = ".new-";

function draftDir(layout: Layout, sandboxId: string): string {
  return join(layout.sandboxes, DRAFT + sandboxId);
}

/** The sandboxes whose disk is half made, or half removed: by somebody who is at it, or who died. */
export async function draftedDisks(layout: Layout): Promise<string[]> {
  const names = await listOrNothing(layout.sandboxes);
  return names.filter((name) => name.startsWith(DRAFT)).map((name) => name.slice(DRAFT.length));
}

export function removeDiskDraft(layout: Layout, sandboxId: string): Promise<void> {
  return removeTree(draftDir(layout, sandboxId));
}

export async function readDisk(layout: Layout, sandboxId: string): Promise<Disk | undefined> {
  const found = await readRecord(layout, sandboxId);
  if (found.state === "unknown") {
    throw unreadable(diskDir(layout, sandboxId), new Error(`${RECORD} is missing or makes no sense`));
  }
  return found.state === "present" ? found.disk : undefined;
}

type FoundRecord =
  | { readonly state: "absent" | "unknown" }
  | { readonly state: "present"; readonly disk: Disk };

/** A record that cannot be read now is an error; one that makes no sense will make none the next time either. */
async function readRecord(layout: Layout, sandboxId: string): Promise<FoundRecord> {
  const dir = diskDir(layout, sandboxId);
  const file = join(dir, RECORD);
  try {
    const { installationId, uid, createdAt } = JSON.parse(await readFile(file, "utf8"));
    if (typeof installationId !== "string" || typeof uid !== "number") return { state: "unknown" };
    // Written once: where it does not say when, its own date does.
    const made = typeof createdAt === "number" ? createdAt : Math.floor((await stat(file)).mtimeMs);
    return { state: "present", disk: { dir, ref: { installationId, sandboxId }, uid, createdAt: made } };
  } catch (error) {
    if (error instanceof SyntaxError) return { state: "unknown" };
    if (isCode(error, "ENOENT", "ENOTDIR")) return { state: exists(dir) ? "unknown" : "absent" };
    throw unreadable(dir, error);
  }
}

function unreadable(dir: string, cause: unknown): HoldfastError {
  return new HoldfastError("internal", `cannot read whose disk ${dir} is`, {
    cause,
    hint: `Look at ${RECORD} there; nothing was changed.`,
  });
}

function ownDisk(disk: Disk, ref: SandboxRef): Disk {
  if (disk.ref.installationId === ref.installationId) return disk;
  throw new HoldfastError("already_exists", `the disk ${disk.dir} belongs to another installation`, {
    hint: "Give each installation its own data dir.",
    started: "no",
  });
}
