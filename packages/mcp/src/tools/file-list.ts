import { AbsolutePath } from "@holdfast/protocol";
import type { FileInfo } from "holdfast";
import { z } from "zod";
import { shortened } from "../clean-text.ts";
import { FileBrief, fileBriefOf } from "../file-brief.ts";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

export const fileList = tool({
  name: "sandbox_file_list",
  title: "List files",
  description: "What is in a directory, or below it with `depth`. Symlinks are told, not followed.",
  input: z.strictObject({
    ...which,
    path: AbsolutePath.default("/workspace"),
    depth: z.number().int().min(1).max(100).default(1),
    limit: z.number().int().min(1).max(1000).default(200),
    cursor: z.string().optional().describe("the nextCursor of the page before"),
  }),
  output: z.object({
    ...presence,
    path: z.string(),
    files: z.array(FileBrief),
    nextCursor: z.string().optional(),
  }),
  hints: { readOnlyHint: true, openWorldHint: false },
  run(input, call) {
    const { path, depth, limit, cursor } = input;
    const { client, signal } = call;
    return withSandbox(call, input, async (sandbox) => {
      // The keeper reads the path as percent-encoded bytes, in which a plus is a plus.
      const at = `/v1/sandboxes/${encodeURIComponent(sandbox.id)}/files/list?path=${encodeURIComponent(path)}`;
      const query = { depth, limit, cursor };
      const answer = await client.json<{ files: FileInfo[]; nextCursor?: string }>({
        method: "GET",
        path: at,
        query,
        again: "safe",
        signal,
      });
      const { nextCursor } = answer.body;
      const files = answer.body.files.map(fileBriefOf);
      const lines = files.map(lineOf);
      if (nextCursor !== undefined) lines.push(`--- there are more: cursor ${JSON.stringify(nextCursor)}`);
      const facts = { path, files, ...(nextCursor !== undefined && { nextCursor }) };
      return { facts, text: lines.length === 0 ? "(empty)" : lines.join("\n") };
    });
  },
});

function lineOf({ path, type, sizeBytes, target }: z.infer<typeof FileBrief>): string {
  const name = shortened(path, 4095);
  if (type === "directory") return `${name}/`;
  if (type === "symlink") return `${name} -> ${shortened(target ?? "?", 4095)}`;
  return type === "file" ? `${name} (${sizeBytes} bytes)` : `${name} (${type})`;
}
