import { FileType } from "@holdfast/protocol";
import type { FileInfo } from "holdfast";
import { z } from "zod";

export const FileBrief = z.object({
  path: z.string(),
  type: z.enum(FileType.options),
  sizeBytes: z.number(),
  mode: z.string(),
  modifiedAt: z.string(),
  target: z.string().optional().describe("where a symlink leads"),
});
type FileBrief = z.infer<typeof FileBrief>;

export function fileBriefOf({ path, type, sizeBytes, mode, modifiedAt, target }: FileInfo): FileBrief {
  return { path, type, sizeBytes, mode, modifiedAt, ...(target !== undefined && { target }) };
}
