import { createHash } from "node:crypto";
import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import type { Layout } from "./layout.ts";

/**
 * As root every sandbox gets a user id of the host for itself: `bwrap --uid 1000` started by root would make the user
 * inside the host's root, and with one common id two sandboxes could read each other's files.
 * The range is one that systemd, distributions and containers leave alone.
 */
const FIRST_UID = 0x7000_0000;
const UID_COUNT = 2 ** 27;
/** For trying things; just past the range, so that no sandbox has it. */
export const PROBE_UID = FIRST_UID + UID_COUNT;
/** Whose the copies of disks are: no sandbox's, and nothing runs as it but `cp`. */
export const SNAPSHOT_UID = PROBE_UID + 1;
/** Claims of other sandboxes met on the way; with a hash over 2^27 places, more than a few means that something is wrong. */
const MAX_PROBES = 10_000;

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Whether a process of this user can be one that we started: anybody on the host can give his own our names. */
export function isOurUser(uid: number): boolean {
  if (!isRoot()) return uid === process.getuid?.();
  return uid === 0 || (uid >= FIRST_UID && uid <= PROBE_UID);
}

/** The id that this sandbox's processes run as. Claimed once, found again later, also after a crash in between. */
export function claimUid(layout: Layout, sandboxId: string): number {
  const own = process.getuid?.() ?? 0;
  if (own !== 0) return own;
  for (const uid of candidates(sandboxId)) {
    if (claim(layout, uid, sandboxId) === sandboxId) return uid;
  }
  throw new HoldfastError("limit_reached", "no free user id was found for the sandbox", {
    hint: `Look at ${layout.uids}: it holds one file for each sandbox.`,
  });
}

/** Only after the disk is gone: a new sandbox under this id could read what is left. May be called twice. */
export function freeUid(layout: Layout, sandboxId: string): void {
  if (!isRoot()) return;
  rmSync(draftFile(layout, sandboxId), { force: true });
  for (const uid of candidates(sandboxId)) {
    const holder = holderOf(layout, uid);
    if (holder === sandboxId) unlinkSync(join(layout.uids, String(uid)));
    if (holder === undefined || holder === sandboxId) return;
  }
}

function* candidates(sandboxId: string): Generator<number> {
  const start = createHash("sha256").update(sandboxId).digest().readUInt32BE(0);
  for (let i = 0; i < MAX_PROBES; i++) yield FIRST_UID + ((start + i) % UID_COUNT);
}

/** Returns who holds the id afterwards. */
function claim(layout: Layout, uid: number, sandboxId: string): string {
  const draft = draftFile(layout, sandboxId);
  writeFileSync(draft, sandboxId, { mode: 0o600 });
  try {
    // A link appears with its content or not at all, so that a crash leaves no claim without a name.
    linkSync(draft, join(layout.uids, String(uid)));
    return sandboxId;
  } catch (error) {
    if (isCode(error, "EEXIST")) return holderOf(layout, uid) ?? "";
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function draftFile(layout: Layout, sandboxId: string): string {
  return join(layout.uids, `.new-${sandboxId}`);
}

function holderOf(layout: Layout, uid: number): string | undefined {
  try {
    return readFileSync(join(layout.uids, String(uid)), "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
