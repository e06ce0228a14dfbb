import { HoldfastError, type Process } from "holdfast";
import { z } from "zod";
import { waitMs } from "../bounds.ts";
import { cleanText } from "../clean-text.ts";
import { bytesOf, endOf, readPage } from "../log-page.ts";
import { presence, which, withSandbox } from "../presence.ts";
import { processStatus, statusOf, statusText } from "../process-brief.ts";
import { tool } from "../tool.ts";

// Enough of the log to see why it is not there yet.
const TAIL_BYTES = 2048;

export const processWait = tool({
  name: "sandbox_process_wait",
  title: "Wait for a process",
  description:
    "Waits until a background process listens on a TCP port, or has printed a text, or (with neither) has ended. If " +
    "that does not come in time, or the process ends first, `met` is false and the end of its log says why. Never kills it.",
  input: z.strictObject({
    ...which,
    processId: z.string().min(1),
    port: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe("wait until it, or what it started, listens there"),
    text: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .describe("wait until its output has this, as it stands here"),
    timeoutMs: waitMs,
  }),
  output: z.object({
    ...presence,
    processId: z.string(),
    met: z.boolean(),
    logEnd: z.string(),
    nextOffset: z.number(),
    ...processStatus,
  }),
  hints: { readOnlyHint: true, openWorldHint: false },
  async run(input, call) {
    const { processId } = input;
    if (input.port !== undefined && input.text !== undefined) throw notBoth();
    return withSandbox(call, input, async (sandbox) => {
      const process = await sandbox.getProcess(processId);
      const met = await waitFor(process, { ...input, signal: call.signal });
      const { status, log } = await process.info();
      const since = Math.max(log.firstOffset, log.nextOffset - TAIL_BYTES);
      const page = await readPage(process.logs({ since, signal: call.signal }), {
        since,
        maxBytes: TAIL_BYTES,
      });
      const logEnd = cleanText(endOf(bytesOf(page), TAIL_BYTES));
      const facts = { processId, met, logEnd, nextOffset: page.nextOffset, ...statusOf(status) };
      return {
        facts,
        text: `${met ? "yes" : "no, not yet"}: ${processId} is ${statusText(facts)}\n--- the end of its log\n${logEnd}`,
      };
    });
  },
});

interface Wait {
  readonly port?: number | undefined;
  readonly text?: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function waitFor(process: Process, { port, text, timeoutMs, signal }: Wait): Promise<boolean> {
  try {
    if (port !== undefined) await process.waitForPort(port, { timeoutMs, signal });
    // A text and no expression: what a program prints must not decide how long this takes.
    else if (text !== undefined) await process.waitForLog(text, { timeoutMs, signal });
    else return (await process.wait({ timeoutMs, signal })).state !== "running";
    return true;
  } catch (error) {
    // Both say so of a process that ended first, and of time that is up.
    if (
      error instanceof HoldfastError &&
      error.code === "wrong_state" &&
      error.details?.processId !== undefined
    )
      return false;
    throw error;
  }
}

function notBoth(): HoldfastError {
  return new HoldfastError("invalid_argument", "wait for a port or for a text, one of them", {
    started: "no",
  });
}
