/** The tar format, without I/O: GNU's is written; GNU's, ustar and pax are read. Names are bytes. */

export const BLOCK_BYTES = 512;

export interface TarEntry {
  readonly path: Uint8Array;
  readonly type: "file" | "directory" | "symlink" | "link";
  /** Of a file, with its holes. */
  readonly sizeBytes: number;
  readonly mode: number;
  /** Seconds; may have a fraction. */
  readonly mtime: number;
  /** Where a symlink leads; or the path of an earlier entry that a hard link is another name of. */
  readonly target: Uint8Array;
  /** Where a file with holes has data, in order. Without it: everywhere. */
  readonly sparse?: readonly Segment[] | undefined;
}

export interface Segment {
  readonly offset: number;
  readonly length: number;
}

/** It is no tar archive, is cut short, or has what is not taken. */
export class TarError extends Error {}

/** From the end of `sizeBytes` to the end of its last block. */
export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** How many bytes of data follow the headers. */
export function storedBytes({ sizeBytes, sparse }: Pick<TarEntry, "sizeBytes" | "sparse">): number {
  return sparse === undefined ? sizeBytes : sparse.reduce((sum, { length }) => sum + length, 0);
}
