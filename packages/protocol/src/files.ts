import { z } from "zod";
import { lazily } from "./lazily.ts";

/**
 * Files. A path is absolute and travels in the query, percent-encoded: any byte but NUL can be said that way, so names
 * that are not UTF-8 need nothing special. Answers have text, and beside it the exact bytes where text cannot say them.
 */
export const FileType = lazily(() => z.enum(["file", "directory", "symlink", "pipe", "socket", "device"]));
export type FileType = z.infer<typeof FileType>;

export const FileInfo = lazily(() =>
  z.object({
    path: z.string().describe("absolute; bytes that are not UTF-8 show as U+FFFD"),
    pathBase64: z.string().optional().describe("the exact bytes of the path, where it is not UTF-8"),
    name: z.string().describe("the last part of the path"),
    type: FileType,
    sizeBytes: z.number().int(),
    mode: z.string().describe("permissions, octal, such as 0644"),
    uid: z.number().int(),
    gid: z.number().int(),
    links: z.number().int().describe("names that this file has"),
    modifiedAt: z.string(),
    etag: z.string().describe("changes with the file; for If-Match"),
    target: z.string().optional().describe("where a symlink leads, as it is written there"),
    targetBase64: z.string().optional(),
    sha256: z.string().optional().describe("of a file's content, if it was asked for"),
  }),
);
export type FileInfo = z.infer<typeof FileInfo>;

export const FileList = lazily(() =>
  z.object({
    files: z.array(FileInfo),
    nextCursor: z.string().optional().describe("there is more: ask again with this as `cursor`"),
  }),
);
export type FileList = z.infer<typeof FileList>;

/** The most entries in one answer of a list. */
export const MAX_LIST_LIMIT = 10_000;

/** What an archive had that was unpacked. */
export const TarResult = lazily(() =>
  z.object({
    entries: z.number().int(),
    sizeBytes: z.number().int().describe("of all files together, with their holes"),
  }),
);
export type TarResult = z.infer<typeof TarResult>;

/** A large file on its way in, in parts: what has arrived stays, also over a lost connection or a restart. */
export const Upload = lazily(() =>
  z.object({
    uploadId: z.string(),
    path: z.string(),
    offset: z.number().int().describe("how many bytes have arrived: where the next part begins"),
    expiresAt: z.string().describe("when it is removed if no part comes"),
  }),
);
export type Upload = z.infer<typeof Upload>;
