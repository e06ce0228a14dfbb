import { AbsolutePath } from "@holdfast/protocol";
import { HoldfastError } from "holdfast";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

export const fileWrite = tool({
  name: "sandbox_file_write",
  title: "Write a file",
  description:
    "Writes a whole file at once: readers see the old content or the new, never a part. Directories on the way are made. " +
    "To change a part of a text file use sandbox_file_edit.",
  input: z.strictObject({
    ...which,
    path: AbsolutePath,
    content: z.string(),
    encoding: z.enum(["utf8", "base64"]).default("utf8").describe("base64 for what is not text"),
    mode: z
      .string()
      .regex(/^[0-7]{3,4}$/, "octal permissions such as 755")
      .optional()
      .describe("such as 755; default: as it was, else 644"),
    ifMatch: z.string().optional().describe("only if the file's etag is still this one"),
    ifAbsent: z.boolean().default(false).describe("only if there is none yet"),
  }),
  output: z.object({ ...presence, path: z.string(), sizeBytes: z.number(), etag: z.string() }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  run(input, call) {
    const { path, ifMatch, ifAbsent } = input;
    const content = input.encoding === "base64" ? fromBase64(input.content) : input.content;
    const mode = input.mode === undefined ? undefined : Number.parseInt(input.mode, 8);
    const options = { mode, ifMatch, ifAbsent, parents: true, signal: call.signal };
    return withSandbox(call, input, async (sandbox) => {
      const { sizeBytes, etag } = await sandbox.files.write(path, content, options);
      return { facts: { path, sizeBytes, etag }, text: `${path} has ${sizeBytes} bytes now` };
    });
  },
});

function fromBase64(text: string): Uint8Array {
  if (z.base64().safeParse(text).success) return Buffer.from(text, "base64");
  throw new HoldfastError("invalid_argument", "content: is not base64", {
    hint: "send text with encoding utf8",
    started: "no",
  });
}
