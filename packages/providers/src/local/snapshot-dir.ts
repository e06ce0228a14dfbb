import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { FoundSnapshot, SnapshotContent, SnapshotNote, SnapshotRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode, writeDurably } from "./atomic-file.ts";
import { FILE_PARTS } from "./disk.ts";
import { SNAPSHOT_UID } from "./host-user.ts";
import { listOrNothing } from "./identity.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { assertSafeId, isSafeId } from "./name.ts";
import { makeDir } from "./owned-files.ts";
import { removeTree } from "./remove-tree.ts";

/** Says whose it is and what is in it. Written last: who finds it has a whole snapshot. */
const RECORD = "snapshot.json";
const DRAFT = ".new-";

export function snapshotDir(layout: Layout, snapshotId: string): string {
  assertSafeId(snapshotId);
  return join(layout.snapshots, snapshotId);
}

export function draftDir(layout: Layout, snapshotId: string): string {
  assertSafeId(snapshotId);
  return join(layout.snapshots, DRAFT + snapshotId);
}

/** The parts of a snapshot, in the order in which an archive has them. */
export function partsIn(dir: string): { dir: string; name: string }[] {
  return FILE_PARTS.map((name) => ({ dir: join(dir, name), name }));
}

/** Makes the snapshot by `fill`, whole or not at all. One call at a time for an id; the caller sees to that. */
export async function makeSnapshot(
  layout: Layout,
  ref: SnapshotRef,
  note: SnapshotNote,
  fill: (draft: string) => Promise<SnapshotContent>,
): Promise<SnapshotContent> {
  makeLayout(layout);
  const draft = draftDir(layout, ref.snapshotId);
  await removeTree(draft);
  try {
    makeDir(draft, { mode: 0o711 });
    for (const { dir } of partsIn(draft)) makeDir(dir, { mode: 0o700, uid: SNAPSHOT_UID });
    const content = await fill(draft);
    const { installationId, snapshotId } = ref;
    const found: FoundSnapshot = { ref: { installationId, snapshotId }, note, content };
    await writeDurably(join(draft, RECORD), JSON.stringify(found));
    await rename(draft, snapshotDir(layout, snapshotId));
    return content;
  } catch (error) {
    await removeTree(draft);
    throw error;
  }
}

/** `undefined` if there is none of this id, whole and ours. */
export async function readSnapshot(layout: Layout, ref: SnapshotRef): Promise<FoundSnapshot | undefined> {
  const found = await readRecord(layout, ref.snapshotId);
  return found?.ref.installationId === ref.installationId ? found : undefined;
}

/** Whether there is a whole one of this id, whoever's. */
export async function hasSnapshot(layout: Layout, snapshotId: string): Promise<boolean> {
  return (await readRecord(layout, snapshotId)) !== undefined;
}

export async function listSnapshots(layout: Layout): Promise<FoundSnapshot[]> {
  const names = (await listOrNothing(layout.snapshots)).filter(isSafeId);
  const found = await Promise.all(names.map((id) => readRecord(layout, id)));
  return found.filter((one) => one !== undefined);
}

/** Takes its name away first, so that nobody ever finds half of one under it. May be called twice. */
export async function deleteSnapshot(layout: Layout, ref: SnapshotRef): Promise<string> {
  const draft = draftDir(layout, ref.snapshotId);
  const dir = snapshotDir(layout, ref.snapshotId);
  await removeTree(draft);
  const found = await readRecord(layout, ref.snapshotId);
  if (found !== undefined && found.ref.installationId !== ref.installationId)
    return `${dir} belongs to another installation and was left alone`;
  if (found !== undefined) {
    await rename(dir, draft);
    await removeTree(draft);
  }
  return `${dir} does not exist`;
}

/** The snapshots that are half made, or half removed: by somebody who is at it, or who died. */
export async function draftedSnapshots(layout: Layout): Promise<string[]> {
  const names = await listOrNothing(layout.snapshots);
  return names.filter((name) => name.startsWith(DRAFT)).map((name) => name.slice(DRAFT.length));
}

export function removeSnapshotDraft(layout: Layout, snapshotId: string): Promise<void> {
  return removeTree(draftDir(layout, snapshotId));
}

/** A record that cannot be read now is an error: a snapshot that is there must not be taken for gone. */
async function readRecord(layout: Layout, snapshotId: string): Promise<FoundSnapshot | undefined> {
  const dir = snapshotDir(layout, snapshotId);
  try {
    return JSON.parse(await readFile(join(dir, RECORD), "utf8")) as FoundSnapshot;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw new HoldfastError("internal", `cannot read what the snapshot ${dir} is`, {
      cause: error,
      hint: `Look at ${RECORD} there; nothing was changed.`,
    });
  }
}
