import { AbsolutePath, ChosenId } from "@holdfast/protocol";
import { z } from "zod";
import { maxOutputBytes, waitMs } from "../bounds.ts";
import { commandOutcome, headBytes, outcomeOf } from "../command-outcome.ts";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

export const exec = tool({
  name: "sandbox_exec",
  title: "Run a command",
  description:
    "Runs a shell command to its end. Each has a fresh shell: only files stay (sandbox_session_exec keeps cd and exports). " +
    "After yieldMs it answers `running` and the command goes on: follow it with sandbox_process_logs and its commandId. " +
    "For servers and watchers use sandbox_process_start. A non-zero exit code is a result, not an error. " +
    "A stopped sandbox is started by this.",
  input: z.strictObject({
    ...which,
    command: z.string().min(1).describe("for bash, or sh where there is no bash"),
    cwd: AbsolutePath.optional().describe("default: /workspace"),
    env: z.record(z.string(), z.string()).optional(),
    stdin: z.string().optional(),
    timeoutMs: z.number().int().min(1).optional().describe("ends it, with everything it started"),
    yieldMs: waitMs.describe("answer after this time even if it still runs"),
    maxOutputBytes,
    commandId: ChosenId.optional().describe("an id of your own: sent again, it never runs twice"),
  }),
  output: z.object({ ...presence, ...commandOutcome }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  run(input, call) {
    const { command, cwd, env, stdin, timeoutMs, yieldMs, commandId, maxOutputBytes: maxBytes } = input;
    const { signal } = call;
    const options = { cwd, env, stdin, timeoutMs, yieldMs, commandId, signal };
    return withSandbox(call, input, async (sandbox) => {
      const state = await sandbox.exec(command, { ...options, maxOutputBytes: headBytes(maxBytes) });
      return outcomeOf(state, { sandbox, maxBytes, signal });
    });
  },
});
