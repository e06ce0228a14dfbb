import { AbsolutePath, ChosenId } from "@holdfast/protocol";
import type { SessionExecState } from "holdfast";
import { z } from "zod";
import { maxOutputBytes, waitMs } from "../bounds.ts";
import { commandOutcome, headBytes, outcomeOf } from "../command-outcome.ts";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

export const sessionExec = tool({
  name: "sandbox_session_exec",
  title: "Run a command in a lasting shell",
  description:
    "Runs a command in a shell that stays: directory, variables, functions and aliases are there for the next command, " +
    "also after a restart of the server or the sandbox. Commands of a session run one at a time. " +
    "A session is made at its first use; give each line of work a sessionId of its own.",
  input: z.strictObject({
    ...which,
    sessionId: ChosenId.default("main"),
    command: z.string().min(1),
    cwd: AbsolutePath.optional().describe("where a new session begins; default: /workspace"),
    stdin: z.string().optional(),
    timeoutMs: z.number().int().min(1).optional().describe("ends it; the state before it is kept"),
    yieldMs: waitMs.describe("answer after this time even if it still runs"),
    maxOutputBytes,
    commandId: ChosenId.optional().describe("an id of your own: sent again, it never runs twice"),
  }),
  output: z.object({
    ...presence,
    ...commandOutcome,
    sessionId: z.string(),
    stateNotice: z
      .string()
      .optional()
      .describe("what became of the shell's state, if it is not as you would expect"),
  }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  run(input, call) {
    const { sessionId, command, cwd, stdin, timeoutMs, yieldMs, commandId, maxOutputBytes: maxBytes } = input;
    const { signal } = call;
    const options = { stdin, timeoutMs, yieldMs, commandId, signal, maxOutputBytes: headBytes(maxBytes) };
    return withSandbox(call, input, async (sandbox) => {
      const session = await sandbox.createSession({ sessionId, cwd, signal });
      const state = await session.exec(command, options);
      const { facts, text } = await outcomeOf(state, { sandbox, maxBytes, signal });
      const stateNotice = noticeOf(state);
      if (stateNotice === undefined) return { facts: { ...facts, sessionId }, text };
      return { facts: { ...facts, sessionId, stateNotice }, text: `${stateNotice}\n${text}` };
    });
  },
});

function noticeOf(state: SessionExecState): string | undefined {
  if (state.status === "running")
    return state.waiting ? "it waits for the session's command before it" : undefined;
  if (state.status === "lost") return undefined;
  const { restored, cwdRecovered, shellExited, stateKept } = state;
  const notices = [
    restored && restoredText(restored),
    cwdRecovered && `the directory ${cwdRecovered.from} is gone; it ran in ${cwdRecovered.to}`,
    shellExited && "this command ended the shell",
    !stateKept && "what it did to the shell's state is not kept: the next command finds the state before it",
  ].filter((text) => typeof text === "string");
  return notices.length === 0 ? undefined : `${notices.join("; ")}.`;
}

function restoredText({ because, from, commandsLost }: NonNullable<Ended["restored"]>): string {
  const what =
    from === "nothing" ? "a new shell, without the old state" : `the shell's state, from its last ${from}`;
  const lost = commandsLost === 0 ? "" : `, without what the last ${commandsLost} commands did to it`;
  return `the shell was made anew (${because}); it has ${what}${lost}`;
}

type Ended = Extract<SessionExecState, { status: "exited" }>;
