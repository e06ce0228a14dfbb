import { BLOCK_BYTES, paddingOf, type Segment, storedBytes, type TarEntry } from "./entry.ts";
import {
  checksumOf,
  EXTENSION_IS_EXTENDED_AT,
  field,
  putNumber,
  putText,
  SEGMENT_BYTES,
  SEGMENTS_IN_EXTENSION,
  SEGMENTS_IN_HEADER,
} from "./fields.ts";

/** Two empty blocks end an archive. */
export const TAR_END = new Uint8Array(2 * BLOCK_BYTES);

/** All blocks that come before an entry's data. */
export function tarHeader(entry: TarEntry): Uint8Array {
  const blocks: Uint8Array[] = [];
  if (entry.path.length > field.name[1]) blocks.push(...longName("L", entry.path));
  if (entry.target.length > field.linkName[1]) blocks.push(...longName("K", entry.target));
  const block = plainHeader(entry, { type: typeLetter(entry), size: storedBytes(entry) });
  if (entry.sparse === undefined) return joined([...blocks, sealed(block)]);
  putNumber(block, field.realSize, entry.sizeBytes);
  return joined([...blocks, ...sparseHeader(block, entry.sparse)]);
}

function plainHeader(
  { path, target, mode, mtime }: Pick<TarEntry, "path" | "target" | "mode" | "mtime">,
  { type, size }: { type: string; size: number },
): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(path.subarray(0, field.name[1]), field.name[0]);
  block.set(target.subarray(0, field.linkName[1]), field.linkName[0]);
  putNumber(block, field.mode, mode & 0o7777);
  putNumber(block, field.uid, 0);
  putNumber(block, field.gid, 0);
  putNumber(block, field.size, size);
  putNumber(block, field.mtime, Math.max(0, Math.floor(mtime)));
  putText(block, field.type, type);
  putText(block, field.magic, "ustar  ");
  return block;
}

function typeLetter({ type, sparse }: TarEntry): string {
  if (type === "file") return sparse === undefined ? "0" : "S";
  return { link: "1", symlink: "2", directory: "5" }[type];
}

/** GNU's way to say a name of any length: an entry of its own before the one that it names. */
function longName(type: "L" | "K", name: Uint8Array): Uint8Array[] {
  const nameless = {
    path: new TextEncoder().encode("././@LongLink"),
    target: new Uint8Array(0),
    mode: 0,
    mtime: 0,
  };
  const size = name.length + 1; // it ends with a NUL
  const data = new Uint8Array(size + paddingOf(size));
  data.set(name);
  return [sealed(plainHeader(nameless, { type, size })), data];
}

function sparseHeader(block: Uint8Array, segments: readonly Segment[]): Uint8Array[] {
  putSegments(block, field.sparse[0], segments.slice(0, SEGMENTS_IN_HEADER));
  const extensions: Uint8Array[] = [];
  for (let from = SEGMENTS_IN_HEADER; from < segments.length; from += SEGMENTS_IN_EXTENSION) {
    const extension = new Uint8Array(BLOCK_BYTES);
    putSegments(extension, 0, segments.slice(from, from + SEGMENTS_IN_EXTENSION));
    if (from + SEGMENTS_IN_EXTENSION < segments.length) extension[EXTENSION_IS_EXTENDED_AT] = 1;
    extensions.push(extension);
  }
  if (extensions.length > 0) block[field.isExtended[0]] = 1;
  return [sealed(block), ...extensions];
}

function putSegments(block: Uint8Array, at: number, segments: readonly Segment[]): void {
  for (const [i, { offset, length }] of segments.entries()) {
    putNumber(block, [at + i * SEGMENT_BYTES, 12], offset);
    putNumber(block, [at + i * SEGMENT_BYTES + 12, 12], length);
  }
}

function sealed(block: Uint8Array): Uint8Array {
  putText(block, field.checksum, `${checksumOf(block).toString(8).padStart(6, "0")}\0 `);
  return block;
}

function joined(blocks: readonly Uint8Array[]): Uint8Array {
  if (blocks.length === 1 && blocks[0] !== undefined) return blocks[0];
  const out = new Uint8Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const block of blocks) {
    out.set(block, at);
    at += block.length;
  }
  return out;
}
