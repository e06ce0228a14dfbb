import { AbsolutePath } from "@holdfast/protocol";
import { HoldfastError } from "holdfast";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

// Held in memory twice; source files are far smaller.
const MAX_FILE_BYTES = 4 * 1024 * 1024;

export const fileEdit = tool({
  name: "sandbox_file_edit",
  title: "Replace text in a file",
  description:
    "Replaces a text that occurs exactly once (or every time, with `all`). Nothing is changed if it does not, or if " +
    "somebody else changed the file meanwhile.",
  input: z.strictObject({
    ...which,
    path: AbsolutePath,
    oldText: z.string().min(1).describe("exactly as it is in the file, with enough around it to be unique"),
    newText: z.string(),
    all: z.boolean().default(false),
  }),
  output: z.object({
    ...presence,
    path: z.string(),
    replacements: z.number(),
    sizeBytes: z.number(),
    etag: z.string(),
  }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  run(input, call) {
    const { path, oldText, newText, all } = input;
    const { signal } = call;
    return withSandbox(call, input, async (sandbox) => {
      const before = await sandbox.files.stat(path, { follow: true, signal });
      if (before.sizeBytes > MAX_FILE_BYTES) throw tooLarge(path);
      const parts = decoded(await sandbox.files.read(path, { ifMatch: before.etag, signal }), path).split(
        oldText,
      );
      const replacements = parts.length - 1;
      if (replacements === 0 || (replacements > 1 && !all)) throw notUnique(path, replacements);
      const { sizeBytes, etag } = await sandbox.files.write(path, parts.join(newText), {
        ifMatch: before.etag,
        signal,
      });
      const times = replacements === 1 ? "once" : `${replacements} times`;
      return { facts: { path, replacements, sizeBytes, etag }, text: `replaced ${times} in ${path}` };
    });
  },
});

function decoded(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new HoldfastError("invalid_argument", `${path} is not UTF-8 text`, {
      hint: "write it whole with sandbox_file_write, or change it with a program through sandbox_exec",
      started: "no",
      cause,
    });
  }
}

function tooLarge(path: string): HoldfastError {
  return new HoldfastError("invalid_argument", `${path} has more than ${MAX_FILE_BYTES} bytes`, {
    hint: "change it with a program, such as sed, through sandbox_exec",
    started: "no",
  });
}

function notUnique(path: string, found: number): HoldfastError {
  const message = found === 0 ? `${path} does not have oldText` : `${path} has oldText ${found} times`;
  return new HoldfastError("invalid_argument", `${message}; nothing was changed`, {
    hint:
      found === 0
        ? "read the file again: white space counts"
        : "take more of what is around it, or say `all`",
    started: "no",
  });
}
