import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { open } from "node:fs/promises";
import type { SnapshotContent } from "@holdfast/core";
import type { SnapshotPart } from "@holdfast/protocol";
import { BLOCK_BYTES, paddingOf, tarHeader } from "@holdfast/protocol/tar";
import { type Walked, walk } from "./walk.ts";

const CHUNK_BYTES = 1024 * 1024;
/** Smaller ones are read in one go: the way through a thread costs more than the read. */
const SMALL_BYTES = 64 * 1024;

/** A directory, and what it is called in an archive. */
export interface NamedTree {
  readonly dir: string;
  readonly name: string;
}

/** A tree as the entries of an archive, whose bytes depend on nothing but the tree. */
export async function* packTree(
  { dir, name }: NamedTree,
  owner?: { readonly uid: number; readonly gid: number },
): AsyncGenerator<Uint8Array> {
  for await (const entry of walk(dir, name)) {
    yield owner === undefined ? tarHeader(entry) : ownedBy(tarHeader(entry), owner);
    if (entry.sizeBytes > 0) yield* contentOf(entry);
  }
}

/** For who unpacks as root. The last block is the entry's own; one that is before it only has a long name. */
function ownedBy(header: Uint8Array, { uid, gid }: { uid: number; gid: number }): Uint8Array {
  const block = Buffer.from(header.buffer, header.byteOffset + header.length - BLOCK_BYTES, BLOCK_BYTES);
  const octal = (value: number, at: number, digits: number) =>
    block.write(value.toString(8).padStart(digits, "0"), at, "latin1");
  // 2^31 is eleven octal digits, and the field has seven: what is larger is written in bytes.
  for (const [value, at] of [
    [uid, 108],
    [gid, 116],
  ] as const) {
    if (value <= 0o7777777) octal(value, at, 7);
    else {
      block.writeUInt32BE(0x8000_0000, at);
      block.writeUInt32BE(value, at + 4);
    }
  }
  block.fill(0x20, 148, 156);
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  block[154] = 0;
  return header;
}

/** How much is in these trees; with `checksum`, all of it is read. */
export async function measure(
  trees: readonly NamedTree[],
  { checksum, signal }: { checksum: boolean; signal: AbortSignal },
): Promise<SnapshotContent> {
  const parts: SnapshotPart[] = [];
  const hash = createHash("sha256");
  for (const { dir, name } of trees) {
    let [files, sizeBytes] = [0, 0];
    for await (const entry of walk(dir, name)) {
      signal.throwIfAborted();
      files++;
      sizeBytes += entry.sizeBytes;
      if (!checksum) continue;
      hash.update(tarHeader(entry));
      if (entry.sizeBytes > 0) for await (const chunk of contentOf(entry)) hash.update(chunk);
    }
    // The part's own directory has no name in it.
    parts.push({ name, files: files - 1, sizeBytes });
  }
  return { parts, checksum: checksum ? `sha256:${hash.digest("hex")}` : null };
}

/** With the padding after it. A hole is read as the zeros that it stands for. */
async function* contentOf({ place, sizeBytes }: Walked): AsyncGenerator<Uint8Array> {
  if (sizeBytes <= SMALL_BYTES) yield readWhole(place, sizeBytes);
  else {
    const file = await open(place, "r");
    try {
      for (let at = 0; at < sizeBytes; ) {
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, sizeBytes - at));
        const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
        if (bytesRead === 0) throw shrunk(place);
        yield chunk.subarray(0, bytesRead);
        at += bytesRead;
      }
    } finally {
      await file.close();
    }
  }
  const padding = paddingOf(sizeBytes);
  if (padding > 0) yield new Uint8Array(padding);
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
