import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

export const processWrite = tool({
  name: "sandbox_process_write",
  title: "Write to a process",
  description:
    "Writes text to a background process's stdin, exactly as given: end a line with \\n. Read the reply with " +
    "sandbox_process_logs from the `nextOffset` in this answer.",
  input: z.strictObject({
    ...which,
    processId: z.string().min(1),
    text: z
      .string()
      .max(1024 * 1024)
      .default(""),
    closeStdin: z.boolean().default(false).describe("end its input afterwards"),
  }),
  output: z.object({
    ...presence,
    processId: z.string(),
    writtenBytes: z.number(),
    nextOffset: z.number().describe("where its log ended before this"),
  }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  run(input, call) {
    const { processId, closeStdin } = input;
    const { signal } = call;
    return withSandbox(call, input, async (sandbox) => {
      const process = await sandbox.getProcess(processId);
      const { nextOffset } = (await process.info()).log;
      const bytes = new TextEncoder().encode(input.text);
      if (bytes.length > 0) await process.write(bytes, { signal });
      if (closeStdin) await process.closeStdin();
      const readOn = JSON.stringify({ sandbox: sandbox.name, processId, since: nextOffset, waitMs: 5000 });
      const text = `${bytes.length} bytes were taken${closeStdin ? ", its stdin is closed" : ""}; its reply: sandbox_process_logs ${readOn}`;
      return { facts: { processId, writtenBytes: bytes.length, nextOffset }, text };
    });
  },
});
