import type { SandboxSpec, SnapshotOrigin, SnapshotPart, SnapshotState } from "@holdfast/protocol";
import type { SandboxRow } from "./lease.ts";
import type { DiskObservation, SandboxRef } from "./provider.ts";

/** What a snapshot holds, once it is whole. */
export interface SnapshotContent {
  readonly parts: readonly SnapshotPart[];
  /** `sha256:…` of the archive without its manifest; `null` where nobody asked for one. */
  readonly checksum: string | null;
}

/** What is written beside the files, so that a store that lost its rows can have them again. */
export interface SnapshotNote {
  readonly name: string;
  readonly sandboxId: string;
  readonly generation: number;
  readonly origin: SnapshotOrigin;
  readonly spec: SandboxSpec;
  readonly labels: Record<string, string>;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}

/** The record of a snapshot: written before anything is copied, ended only by evidence that nothing is left. */
export interface SnapshotRow extends SnapshotNote, SnapshotContent {
  readonly id: string;
  readonly tenantId: string;
  readonly provider: string;
  readonly phase: SnapshotState;
  readonly copiedBytes: number;
  readonly failure: string | null;
  /** The server that makes or removes it, and until when it has the right to without saying so again. */
  readonly owner: string;
  readonly busyUntil: number;
  /** Grows with every write. */
  readonly version: number;
}

export interface SnapshotRef {
  readonly installationId: string;
  readonly snapshotId: string;
}

export interface FoundSnapshot {
  readonly ref: SnapshotRef;
  readonly note: SnapshotNote;
  readonly content: SnapshotContent;
}

export interface CopyOptions {
  /** Leave out the checksum, which reads everything once more: for one that nobody will export. */
  readonly checksum: boolean;
  /** At most so much of the disk; `capacity_exhausted` if it would need more. */
  readonly roomBytes: number;
  onProgress(copiedBytes: number): void;
  readonly signal: AbortSignal;
}

/** An archive on its way out: read it to its end, or cancel it. */
export type Archive = ReadableStream<Uint8Array<ArrayBuffer>>;

/**
 * A backend's copies of disks. A copy is made under another name and gets its own when it is whole, so under an id
 * there is all of a snapshot or nothing. Every method may be called twice.
 */
export interface SnapshotVault {
  /**
   * Copies the disk of a sandbox. What runs on it stands still meanwhile, so that the copy is of one moment: as if the
   * power had failed then. What was written before by any program, synced or not, is in it. `wrong_state`: there is
   * nothing to copy.
   */
  make(
    snapshot: SnapshotRef,
    of: SandboxRef,
    note: SnapshotNote,
    options: CopyOptions,
  ): Promise<SnapshotContent>;
  /** Nothing may be restoring from it. */
  remove(snapshot: SnapshotRef, signal: AbortSignal): Promise<DiskObservation>;
  /** Every whole snapshot on this backend, of any installation; complete, or an error. */
  discover(signal: AbortSignal): Promise<readonly FoundSnapshot[]>;
  /** Removes what interrupted calls have left half made, of snapshots and of disks, and nothing that is under way. */
  removeDrafts(signal: AbortSignal): Promise<void>;
  /** One portable archive; `not_found` if there is no such snapshot. */
  export(snapshot: SnapshotRef, signal: AbortSignal): Promise<Archive>;
  /** From an archive that nobody has checked: `invalid_argument` for one that is not whole, or not to be trusted. */
  import(
    snapshot: SnapshotRef,
    archive: Archive,
    note: SnapshotNote,
    options: CopyOptions,
  ): Promise<SnapshotContent>;
}

export function noteOf(row: SnapshotRow): SnapshotNote {
  const { name, sandboxId, generation, origin, spec, labels, createdAt, expiresAt } = row;
  return { name, sandboxId, generation, origin, spec, labels, createdAt, expiresAt };
}

type Parts = Pick<SnapshotContent, "parts">;

export function sizeOf({ parts }: Parts): { files: number; sizeBytes: number } {
  const there = parts.filter(({ leftOut }) => leftOut === undefined);
  return {
    files: there.reduce((sum, part) => sum + part.files, 0),
    sizeBytes: there.reduce((sum, part) => sum + part.sizeBytes, 0),
  };
}

/** What a sandbox that is made from it needs for itself: an image is shared by all of them. */
export function copySizeOf({ parts }: Parts): number {
  return sizeOf({ parts: parts.filter(({ image }) => image === undefined) }).sizeBytes;
}

/** What a sandbox that is made from it begins without, in words. */
export function lossesIn({ parts }: Parts): string[] {
  const leftOut = parts.filter((part) => part.leftOut);
  return leftOut.map(({ name }) => (name === LAYER ? CONTAINERS_OWN_FILES : name));
}

/** The name of the part that is an image. */
export const LAYER = "layer";
export const CONTAINERS_OWN_FILES = "the container's own files";

/** What is to be done about a row, if anything. `found`: what the backend has under its id. */
export type SnapshotStep =
  | { readonly do: "rest" }
  | { readonly do: "conclude"; readonly content: SnapshotContent }
  | { readonly do: "fail"; readonly because: string }
  | { readonly do: "order-removal"; readonly because: string }
  | { readonly do: "remove" };

/** Decides from the row, what the backend has, and the time. `abandoned`: whoever worked on it does not any more. */
export function nextSnapshotStep(
  row: SnapshotRow,
  world: { found: FoundSnapshot | undefined; usedBy: number; abandoned: boolean; now: number },
): SnapshotStep {
  switch (row.phase) {
    case "making":
      if (!world.abandoned) return { do: "rest" };
      // The work was done, and the server died before it could write so.
      if (world.found !== undefined) return { do: "conclude", content: world.found.content };
      return { do: "fail", because: "the server ended while it was made; nothing of it is left" };
    case "ready":
      if (world.found === undefined) return { do: "fail", because: "its files are gone from the provider" };
      if (row.origin === "fork" && world.abandoned && row.busyUntil <= world.now)
        return { do: "order-removal", because: "nobody forks from it any more" };
      return isExpired(row, world.now) ? { do: "order-removal", because: "expired" } : { do: "rest" };
    case "failed":
      if (isExpired(row, world.now)) return { do: "order-removal", because: "expired" };
      // Its maker was only thought to be dead.
      return world.found === undefined ? { do: "rest" } : { do: "conclude", content: world.found.content };
    case "deleting":
      return world.usedBy === 0 && world.abandoned ? { do: "remove" } : { do: "rest" };
    default:
      return row.phase satisfies never;
  }
}

function isExpired({ expiresAt }: SnapshotRow, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Whether its files are to be copied before they go: nobody asked for their end, and somebody wants them kept. */
export function savesFiles({ policy, desired, deleteReason, lastDeath }: SandboxRow): boolean {
  if (policy.snapshotOnReap !== true || lastDeath === null) return false;
  return !ASKED_FOR.has(desired === "deleted" ? (deleteReason ?? "") : lastDeath.cause);
}

const ASKED_FOR: ReadonlySet<string> = new Set(["delete_requested", "stop_requested", "abandoned"]);
