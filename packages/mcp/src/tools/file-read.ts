import { AbsolutePath } from "@holdfast/protocol";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";
import { wholeEnd, wholeStart } from "../utf8-edges.ts";

export const fileRead = tool({
  name: "sandbox_file_read",
  title: "Read a file",
  description:
    "A file's content, or a part of it: text as it is, anything else as base64 (`encoding` says which). To read on, give " +
    "`nextOffset` as `offset`.",
  input: z.strictObject({
    ...which,
    path: AbsolutePath,
    offset: z.number().int().min(0).default(0).describe("the first byte"),
    maxBytes: z
      .number()
      .int()
      .min(16)
      .max(256 * 1024)
      .default(32 * 1024),
  }),
  output: z.object({
    ...presence,
    path: z.string(),
    content: z.string(),
    encoding: z.enum(["utf8", "base64"]),
    sizeBytes: z.number().describe("of the whole file"),
    offset: z.number(),
    nextOffset: z.number().optional().describe("there is more from here on"),
    etag: z.string().describe("for ifMatch of sandbox_file_write"),
  }),
  hints: { readOnlyHint: true, openWorldHint: false },
  run(input, call) {
    const { path, offset, maxBytes } = input;
    const { signal } = call;
    return withSandbox(call, input, async (sandbox) => {
      const { sizeBytes, etag } = await sandbox.files.stat(path, { follow: true, signal });
      const end = Math.min(offset + maxBytes, sizeBytes);
      const bytes =
        end > offset
          ? await sandbox.files.read(path, { start: offset, end, ifMatch: etag, signal })
          : new Uint8Array(0);
      const part = asContent(bytes, { isStart: offset === 0, isEnd: end === sizeBytes });
      const nextOffset = offset + part.takenBytes;
      const hasMore = nextOffset < sizeBytes;
      const { content, encoding } = part;
      const facts = { path, content, encoding, sizeBytes, offset, etag, ...(hasMore && { nextOffset }) };
      const rest = hasMore
        ? `\n--- ${sizeBytes - nextOffset} bytes follow: read on with offset ${nextOffset}`
        : "";
      const about = encoding === "base64" ? `--- base64 of ${bytes.length} bytes\n` : "";
      return { facts, text: `${about}${content}${rest}` };
    });
  },
});

/** Text if it is text, up to whole characters at the edges of a part. */
function asContent(bytes: Uint8Array, edges: { isStart: boolean; isEnd: boolean }) {
  const from = edges.isStart ? 0 : wholeStart(bytes);
  const to = edges.isEnd ? bytes.length : Math.max(from, wholeEnd(bytes));
  const text = decoded(bytes.subarray(from, to));
  if (text !== undefined) return { content: text, encoding: "utf8" as const, takenBytes: to };
  return {
    content: Buffer.from(bytes).toString("base64"),
    encoding: "base64" as const,
    takenBytes: bytes.length,
  };
}

/** Nothing if it is not UTF-8, or has what no text has. */
function decoded(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
