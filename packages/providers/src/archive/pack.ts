import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { open } from "node:fs/promises";
import type { SnapshotContent } from "@holdfast/core";
import type { SnapshotPart } from "@holdfast/protocol";
import { inside } from "../local/inside.ts";
import { headerOf, paddingFor } from "./tar-header.ts";
import { type Walked, walk } from "./walk.ts";

const CHUNK_BYTES = 1024 * 1024;
/** Smaller ones are read in one go: the way through a thread costs more than the read. */
const SMALL_BYTES = 64 * 1024;

async function* contentOf({ place, size }: Walked): AsyncGenerator<Buffer> {
  if (size <= SMALL_BYTES) yield readWhole(place, size);
  else {
    const file = await open(place, "r");
    try {
      for (let at = 0; at < size; ) {
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
        const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
        if (bytesRead === 0) throw shrunk(place);
        yield chunk.subarray(0, bytesRead);
        at += bytesRead;
      }
    } finally {
      await file.close();
    }
  }
  const padding = paddingFor(size);
  if (padding.length > 0) yield padding;
}

function readWhole(place: Buffer, size: number): Buffer {
  const content = Buffer.allocUnsafe(size);
  const fd = openSync(place, "r");
  try {
    for (let at = 0; at < size; ) {
      const read = readSync(fd, content, at, size - at, at);
      if (read === 0) throw shrunk(place);
      at += read;
    }
  } finally {
    closeSync(fd);
  }
  return content;
}

/** Nobody but us may write there. */
function shrunk(place: Buffer): Error {
  return new Error(`${place} became shorter while it was read`);
}

/** How much is in these trees; with `checksum`, all of it is read. */
export async function measure(
  parts: readonly { readonly dir: string; readonly name: string }[],
  { checksum, signal }: { checksum: boolean; signal: AbortSignal },
): Promise<SnapshotContent> {
  const measured: SnapshotPart[] = [];
  const hash = createHash("sha256");
  for (const { dir, name } of parts) {
    let [files, sizeBytes] = [0, 0];
    for await (const entry of walk(dir, name)) {
      signal.throwIfAborted();
      files++;
      sizeBytes += entry.size;
      if (!checksum) continue;
      hash.update(headerOf(entry, { uid: inside.uid }));
      if (entry.size > 0) for await (const chunk of contentOf(entry)) hash.update(chunk);
    }
    // The part's own directory has no name in it.
    measured.push({ name, files: files - 1, sizeBytes });
  }
  return { parts: measured, checksum: checksum ? `sha256:${hash.digest("hex")}` : null };
}
