import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type FoundSnapshot, type RestoreProgress, type SandboxRef, sizeOf } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { streamOf } from "../archive/export.ts";
import { packTree } from "../archive/pack.ts";
import { writeDurably } from "../local/atomic-file.ts";
import { FILE_PARTS } from "../local/disk.ts";
import type { Layout } from "../local/layout.ts";
import { exists } from "../local/remove-tree.ts";
import { readSnapshot, snapshotDir } from "../local/snapshot-dir.ts";
import type { DockerApi } from "./api.ts";
import { placeOfPart } from "./inside.ts";
import type { Account } from "./user.ts";

/** 10 MB/s: a daemon that unpacks more slowly hangs. */
const SLOWEST_BYTES_PER_MS = 10_000;
const LEAST_MS = 60_000;

export interface Filling {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly snapshotId: string;
  /** One that was never started. */
  readonly container: string;
  readonly account: Account;
  /** Where it says how far it is, as long as it goes on. */
  readonly restoring: Map<string, RestoreProgress>;
}

/**
 * Puts a snapshot into new volumes. Until that is written down nothing is started on them, and what an interrupted call
 * has put there is put there again: so whoever starts finds all of it. It goes on when its caller gives up, and the next
 * call waits for it.
 */
export async function fillDisk(ref: SandboxRef, filling: Filling): Promise<void> {
  const { layout, snapshotId, restoring } = filling;
  const mark = markOf(layout, ref);
  if (exists(mark)) return;
  const { installationId } = ref;
  const found = await readSnapshot(layout, { installationId, snapshotId });
  if (found === undefined) throw gone(snapshotId);
  const progress = { copiedBytes: 0, ...sizeOf(found.content) };
  restoring.set(ref.sandboxId, progress);
  try {
    await fillParts(found, progress, filling);
  } finally {
    restoring.delete(ref.sandboxId);
  }
  await writeDurably(mark, snapshotId);
}

async function fillParts(
  found: FoundSnapshot,
  progress: { copiedBytes: number },
  { api, layout, snapshotId, container, account }: Filling,
): Promise<void> {
  for (const part of FILE_PARTS) {
    const sizeBytes = found.content.parts.find(({ name }) => name === part)?.sizeBytes ?? 0;
    const dir = join(snapshotDir(layout, snapshotId), part);
    const entries = counted(packTree({ dir, name: "." }, account), progress);
    await api.request({
      method: "PUT",
      path: `/containers/${container}/archive`,
      query: { path: placeOfPart[part] },
      tar: streamOf(withEnd(entries)),
      signal: new AbortController().signal,
      timeoutMs: LEAST_MS + sizeBytes / SLOWEST_BYTES_PER_MS,
    });
  }
}

async function* counted(
  pieces: AsyncIterable<Uint8Array>,
  progress: { copiedBytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    yield piece;
    progress.copiedBytes += piece.length;
  }
}

/** With the disk. May be called twice. */
export function forgetFilled(layout: Layout, ref: SandboxRef): Promise<void> {
  return rm(markOf(layout, ref), { force: true });
}

function markOf(layout: Layout, { sandboxId }: SandboxRef): string {
  return join(layout.sandboxes, `filled-${sandboxId}`);
}

async function* withEnd(entries: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* entries;
  yield new Uint8Array(1024);
}

function gone(snapshotId: string): HoldfastError {
  return new HoldfastError("launch_failed", `there is no snapshot ${snapshotId} for Docker here`, {
    hint: "It was removed by hand, or is on another provider. Make the sandbox from another one.",
    started: "no",
  });
}
