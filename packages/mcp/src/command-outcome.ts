import type { CommandState, Sandbox } from "holdfast";
import { z } from "zod";
import { cleaned, cleanText } from "./clean-text.ts";
import { bytesOf, endOf, readPage } from "./log-page.ts";
import type { Told } from "./tool.ts";

/** How a command ended, or that it has not, with a bounded part of its output. */
export const commandOutcome = {
  commandId: z.string(),
  status: z.enum(["exited", "running", "lost"]),
  exitCode: z.number().optional(),
  signal: z.string().nullable().optional(),
  timedOut: z.boolean().optional(),
  oomKilled: z.boolean().optional(),
  reason: z.string().optional().describe("why it is lost"),
  durationMs: z.number().optional(),
  stdout: z.string(),
  stderr: z.string(),
  omittedBytes: z.number().describe("output that is left out here"),
  nextOffset: z.number().optional().describe("where to read on with sandbox_process_logs"),
};
const CommandOutcome = z.object(commandOutcome);
type CommandOutcome = z.infer<typeof CommandOutcome>;

type Exited = Extract<CommandState, { status: "exited" }>;
type Running = Extract<CommandState, { status: "running" }>;

interface Shown {
  readonly sandbox: Sandbox;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** A character's rest, which the keeper leaves out of a bounded stream. */
const CUT_BYTES = 3;

/** The keeper gives the beginning of long output; as much again from the end says how it went. */
export function headBytes(maxOutputBytes: number): number {
  return Math.floor(maxOutputBytes / 2);
}

export async function outcomeOf(state: CommandState, shown: Shown): Promise<Told<CommandOutcome>> {
  const facts = await factsOf(state, shown);
  return { facts, text: textOf(facts, shown.sandbox.name) };
}

async function factsOf(state: CommandState, shown: Shown): Promise<CommandOutcome> {
  switch (state.status) {
    case "exited":
      return exited(state, shown);
    case "running":
      return running(state, shown);
    case "lost": {
      const { commandId, reason } = state;
      return { commandId, status: "lost", reason, stdout: "", stderr: "", omittedBytes: 0 };
    }
  }
}

async function exited(state: Exited, shown: Shown): Promise<CommandOutcome> {
  const { commandId, exitCode, signal, timedOut, oomKilled, durationMs, truncated, log } = state;
  const ending = { commandId, status: "exited" as const, exitCode, signal, timedOut, oomKilled, durationMs };
  const missing = truncated.stdoutBytes + truncated.stderrBytes;
  const [stdout, stderr] = [cleaned(state.stdout), cleaned(state.stderr)];
  if (missing === 0) return { ...ending, stdout, stderr, omittedBytes: 0, nextOffset: log.nextOffset };
  const half = headBytes(shown.maxBytes);
  const end = await lastOf(commandId, log, { ...shown, maxBytes: half });
  const out = joined(stdout, { missing: truncated.stdoutBytes, end: end.stdout });
  const err = joined(stderr, { missing: truncated.stderrBytes, end: end.stderr });
  return {
    ...ending,
    stdout: out.text,
    stderr: err.text,
    omittedBytes: out.omitted + err.omitted,
    // At least so much of the stream that is cut comes before its cut: from here on nothing is missed.
    nextOffset: Math.max(log.firstOffset, half - CUT_BYTES),
  };
}

async function running(state: Running, shown: Shown): Promise<CommandOutcome> {
  const { commandId, durationMs, log } = state;
  const end = await lastOf(commandId, log, shown);
  return {
    commandId,
    status: "running",
    durationMs,
    stdout: cleanText(endOf(end.stdout, shown.maxBytes)),
    stderr: cleanText(endOf(end.stderr, shown.maxBytes)),
    omittedBytes: end.since,
    nextOffset: end.nextOffset,
  };
}

/** The end of a command's log, as it is now, by streams. */
async function lastOf(commandId: string, log: Running["log"], { sandbox, maxBytes, signal }: Shown) {
  const since = Math.max(log.firstOffset, log.nextOffset - maxBytes);
  const page = await readPage(sandbox.commandLogs(commandId, { since, signal }), { since, maxBytes });
  return {
    since,
    nextOffset: page.nextOffset,
    stdout: bytesOf(page, "stdout"),
    stderr: bytesOf(page, "stderr"),
  };
}

function joined(head: string, rest: { missing: number; end: Uint8Array }): { text: string; omitted: number } {
  if (rest.missing === 0) return { text: head, omitted: 0 };
  const end = endOf(rest.end, rest.missing);
  const omitted = rest.missing - end.length;
  const gap = omitted === 0 ? "" : `\n[… ${omitted} bytes are left out here …]\n`;
  return { text: head + gap + cleanText(end), omitted };
}

function textOf(facts: CommandOutcome, sandbox: string): string {
  const { stdout, stderr } = facts;
  return [
    endingText(facts),
    stdout === "" ? "" : `--- stdout\n${stdout.replace(/\n$/, "")}`,
    stderr === "" ? "" : `--- stderr\n${stderr.replace(/\n$/, "")}`,
    goOnText(facts, sandbox),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function endingText({
  status,
  exitCode,
  signal,
  timedOut,
  oomKilled,
  durationMs = 0,
  reason,
}: CommandOutcome): string {
  const seconds = `${(durationMs / 1000).toFixed(1)} s`;
  if (status === "running") return `still running after ${seconds}`;
  if (status === "lost")
    return `lost: ${reason}. It was started and may have done its work, in part or whole: look before you run it again.`;
  const how = timedOut
    ? ", ended by its timeout"
    : oomKilled
      ? ", killed for want of memory"
      : signal
        ? `, ${signal}`
        : "";
  return `exit code ${exitCode}${how}, after ${seconds}`;
}

function goOnText({ status, commandId, omittedBytes, nextOffset }: CommandOutcome, sandbox: string): string {
  const readOn = `sandbox_process_logs ${JSON.stringify({ sandbox, commandId, since: nextOffset })}`;
  if (status === "running") return `--- it goes on; what it writes and how it ends: ${readOn}`;
  return omittedBytes > 0 ? `--- ${omittedBytes} bytes are left out; they are in the log: ${readOn}` : "";
}
