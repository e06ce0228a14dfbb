/** One name in an archive of files. Owners are not in it: every file is the sandbox's user's. */
export interface Entry {
  /** Relative, with `/` between and none at an end. Bytes, because a name need not be text. */
  readonly path: Buffer;
  readonly type: EntryType;
  /** The lowest 12 bits. */
  readonly mode: number;
  /** Of a file's content; 0 for all else. */
  readonly size: number;
  /** In seconds. */
  readonly mtime: number;
  /** What a symbolic link says, or the path of the file that a hard link is another name of. */
  readonly link?: Buffer;
}

export const typeFlags = {
  file: "0",
  hardlink: "1",
  symlink: "2",
  directory: "5",
  fifo: "6",
} as const;
type EntryType = keyof typeof typeFlags;
