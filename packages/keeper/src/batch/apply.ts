import { BatchEntry, BatchReader, type BatchResult, HoldfastError } from "@holdfast/protocol";
import { checkConditions } from "../files/conditions.ts";
import { about } from "../files/failures.ts";
import { statIfAny } from "../files/fs-calls.ts";
import { joined, openSpot, type Target } from "../files/paths.ts";
import type { Pending } from "../files/pending.ts";
import { deleteEmptyParents, deleteFile } from "../files/remove.ts";
import { writeFile } from "../files/write.ts";
import { putLink } from "./put-link.ts";

export interface BatchCall {
  readonly root: string;
  readonly body: AsyncIterable<Uint8Array>;
  /** Throws if the caller may not go on. */
  readonly check: () => void;
}

/**
 * Changes many files, each whole or not at all and only if it is what the sender takes it for. What cannot be done with
 * one is told, and is no reason to leave the others.
 */
export async function applyBatch(call: BatchCall, pending: Pending): Promise<BatchResult[]> {
  const reader = new BatchReader(call.body);
  const results: BatchResult[] = [];
  using _ = pending.series();
  for (let header = await headerOf(reader); header !== undefined; header = await headerOf(reader)) {
    const content = reader.content(header.op === "write" ? header.sizeBytes : 0);
    results.push(await told(header.path, () => apply({ entry: header, content, call, pending })));
    for await (const _ of content); // of a file that was refused; the next header is behind it
  }
  return results;
}

/** What became of one file, also if that is a refusal. */
export async function told<T extends object>(path: string, work: () => Promise<T>) {
  try {
    return { path, ...(await work()) };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return { path, error: { code: error.code, message: error.message } };
  }
}

/** Where an entry is. No link is followed: who syncs means the tree as it is, not what it leads to. */
export function targetOf(root: string, path: string): Target & { root: Buffer } {
  const top = Buffer.from(root.replace(/(?<=.)\/+$/, ""));
  return { path: joined(top, Buffer.from(path)), root: top, links: "never" };
}

async function headerOf(reader: BatchReader): Promise<BatchEntry | undefined> {
  const header = await reader.header();
  if (header === undefined) return undefined;
  const parsed = BatchEntry.safeParse(header);
  if (parsed.success) return parsed.data;
  throw new HoldfastError("invalid_argument", `an entry of the batch is not valid: ${parsed.error.message}`, {
    hint: "entries before it have been carried out",
  });
}

interface Step {
  readonly entry: BatchEntry;
  readonly content: AsyncIterable<Uint8Array>;
  readonly call: BatchCall;
  readonly pending: Pending;
}

async function apply({ entry, content, call, pending }: Step): Promise<{ etag?: string }> {
  const { root, check } = call;
  const target = targetOf(root, entry.path);
  const { expected } = entry;
  const conditions = {
    ifMatch: expected === null ? null : `"${expected}"`,
    ifNoneMatch: expected === null ? "*" : null,
  };
  return about(target, async () => {
    check();
    if (entry.op === "write") {
      const mode = Number.parseInt(entry.mode, 8);
      const options = { mode, sync: false, parents: true, check };
      const { file } = await writeFile({ target, body: content, ...options, ...conditions }, pending);
      return { etag: file.etag };
    }
    if (entry.op === "link")
      return putLink({ target, leadsTo: Buffer.from(entry.target), ...conditions }, pending);
    {
      using spot = openSpot(target);
      checkConditions(target.path, statIfAny(spot.dirFd, spot.name), conditions);
    }
    await deleteFile(target, { recursive: false });
    // A batch knows of no directories: one is there for its files.
    deleteEmptyParents(target);
    return {};
  });
}
