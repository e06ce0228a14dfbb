import type { LogEvent } from "holdfast";
import { z } from "zod";
import { maxOutputBytes } from "../bounds.ts";
import { cleanText } from "../clean-text.ts";
import { bytesOf, endOf, type LogPage, readPage } from "../log-page.ts";
import { presence, which, withSandbox } from "../presence.ts";
import { processStatus, statusText } from "../process-brief.ts";
import { type Program, programId, programOf } from "../program.ts";
import { tool } from "../tool.ts";

export const processLogs = tool({
  name: "sandbox_process_logs",
  title: "Read output",
  description:
    "The output of a background process or a command, and whether it still runs. Without `since`: its end. To go on, " +
    "give the last answer's `nextOffset` as `since`: nothing comes twice and nothing is missed, also after restarts.",
  input: z.strictObject({
    ...which,
    ...programId,
    since: z.number().int().min(0).optional().describe("the offset to begin at; 0 is the beginning"),
    maxOutputBytes,
    waitMs: z
      .number()
      .int()
      .min(0)
      .max(55_000)
      .default(0)
      .describe("if there is nothing new, wait so long for it"),
    stream: z.enum(["stdout", "stderr"]).optional().describe("only this one"),
    encoding: z
      .enum(["utf8", "base64"])
      .default("utf8")
      .describe("base64: every byte, also control characters"),
  }),
  output: z.object({
    ...presence,
    id: z.string(),
    output: z.string().describe("stdout and stderr as they were written"),
    firstOffset: z.number().describe("where this begins in the log"),
    nextOffset: z.number().describe("where to read on"),
    hasMore: z.boolean().describe("there is more already"),
    droppedBytes: z.number().describe("what the log no longer has of this part"),
    ...processStatus,
  }),
  hints: { readOnlyHint: true, openWorldHint: false },
  run(input, call) {
    const { maxOutputBytes: maxBytes, stream, encoding } = input;
    return withSandbox(call, input, async (sandbox) => {
      const program = programOf(sandbox, input);
      const { log } = await program.look();
      const since = input.since ?? Math.max(log.firstOffset, log.nextOffset - maxBytes);
      const read = () => readPage(program.logs({ since, stream, signal: call.signal }), { since, maxBytes });
      let page = await read();
      if (page.pieces.length === 0 && input.waitMs > 0) {
        await anythingNew(program, { since, stream, waitMs: input.waitMs, signal: call.signal });
        page = await read();
      }
      // Looked at last: what has ended by now has written everything that this page says is the last.
      const { status } = await program.look();
      const facts = { id: program.id, ...pageFacts(page, since, encoding), ...status };
      return { facts, text: textOf(facts, { ...input, sandbox: sandbox.name }) };
    });
  },
});

interface Wait {
  readonly since: number;
  readonly stream: "stdout" | "stderr" | undefined;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Resolves at the next output, at the end of the program, or when the time is up. */
async function anythingNew(program: Program, { since, stream, waitMs, signal }: Wait): Promise<void> {
  const timeUp = AbortSignal.timeout(waitMs);
  const events = program.logs({ since, stream, follow: true, signal: AbortSignal.any([timeUp, signal]) });
  try {
    for await (const event of events) if (isNews(event)) return;
  } catch (error) {
    if (!timeUp.aborted) throw error;
  }
}

function isNews({ type }: LogEvent): boolean {
  return type !== "truncated";
}

function pageFacts(page: LogPage, since: number, encoding: "utf8" | "base64") {
  const bytes = bytesOf(page);
  const output =
    encoding === "base64" ? Buffer.from(bytes).toString("base64") : cleanText(endOf(bytes, bytes.length));
  const { nextOffset, droppedBytes, isLast } = page;
  return { output, firstOffset: since, nextOffset, hasMore: !isLast, droppedBytes };
}

type Facts = ReturnType<typeof pageFacts> & { id: string } & Parameters<typeof statusText>[0];

function textOf(
  facts: Facts,
  asked: { sandbox: string; processId?: string | undefined; commandId?: string | undefined },
): string {
  const { output, firstOffset, nextOffset, droppedBytes, hasMore } = facts;
  const { sandbox, processId, commandId } = asked;
  const readOn = JSON.stringify({ sandbox, processId, commandId, since: nextOffset });
  const dropped = droppedBytes > 0 ? `; ${droppedBytes} bytes of it are no longer kept` : "";
  return [
    `${facts.id}: ${statusText(facts)}; output from ${firstOffset} to ${nextOffset}${dropped}`,
    output === "" ? "(nothing new)" : output.replace(/\n$/, ""),
    facts.status === "running" || hasMore
      ? `--- ${hasMore ? "there is more" : "read on"}: sandbox_process_logs ${readOn}`
      : "",
  ]
    .filter((part) => part !== "")
    .join("\n");
}
