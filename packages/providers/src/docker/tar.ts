/** An entry of an archive, which the daemon unpacks into a container as root: so it can make things another user's. */
export interface TarEntry {
  /** Relative to where it is unpacked. */
  readonly path: string;
  readonly uid: number;
  /** Without it, as the user's. */
  readonly gid?: number;
  readonly mode: number;
  /** Without it, a directory. */
  readonly content?: string;
}

const BLOCK = 512;

/** The format `ustar`, for short names. */
export function tarOf(entries: readonly TarEntry[], options: { now: number }): Uint8Array<ArrayBuffer> {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? "", "utf8");
    return [tarHeader(entry, { ...options, size: content.length }), content, tarPadding(content.length)];
  });
  return Uint8Array.from(Buffer.concat([...blocks, TAR_END]));
}

export const TAR_END = Buffer.alloc(2 * BLOCK);

/** What follows a content of this size, up to the next header. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc(-size & (BLOCK - 1));
}

/** What stands before an entry's content; whether there is any says what it is, `size` how much of it. */
export function tarHeader(entry: TarEntry, { size, now }: { size: number; now: number }): Buffer {
  const { path, uid, gid = uid, mode, content } = entry;
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void => {
    const digits = value.toString(8).padStart(length - 1, "0");
    if (digits.length < length) block.write(`${digits}\0`, offset, "latin1");
    // What is too large for digits is said in bytes, with the highest bit set.
    else block.writeUInt32BE(0x8000_0000, offset) && block.writeUInt32BE(value, offset + length - 4);
  };
  block.write(path, 0, 100, "utf8");
  octal(mode, 100, 8);
  octal(uid, 108, 8);
  octal(gid, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(now / 1000), 136, 12);
  block.write("        ", 148, "latin1");
  block.write(content === undefined ? "5" : "0", 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return block;
}

/** The content of an archive's first entry. */
export function firstFileIn(tar: Uint8Array): string {
  const bytes = Buffer.from(tar);
  const size = Number.parseInt(bytes.toString("latin1", 124, 135), 8);
  return bytes.toString("utf8", BLOCK, BLOCK + size);
}
