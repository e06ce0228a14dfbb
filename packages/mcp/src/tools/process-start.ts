import { AbsolutePath, ChosenId, KeepsAwake } from "@holdfast/protocol";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { ProcessBrief, processBriefOf, statusText } from "../process-brief.ts";
import { tool } from "../tool.ts";

export const processStart = tool({
  name: "sandbox_process_start",
  title: "Start a background process",
  description:
    "Starts a program that runs on by itself, such as a dev server: it outlives this call, this conversation and a " +
    "restart of the Holdfast server. Then sandbox_process_wait (until it listens or prints something), " +
    "sandbox_process_logs, sandbox_port for an address. Its stdin stays open for sandbox_process_write.",
  input: z.strictObject({
    ...which,
    command: z.string().min(1).describe("for bash, or sh where there is no bash; no & at its end"),
    cwd: AbsolutePath.optional().describe("default: /workspace"),
    env: z.record(z.string(), z.string()).optional(),
    processId: ChosenId.optional().describe(
      "an id of your own, such as dev-server: sent again, it never starts twice",
    ),
    timeoutMs: z.number().int().min(1).optional().describe("ends it, with everything it started"),
    keepsAwake: z
      .enum(KeepsAwake.options)
      .optional()
      .describe(
        "whether it keeps an idle sandbox from being stopped; default: active, while it does something",
      ),
  }),
  output: z.object({ ...presence, ...ProcessBrief.shape }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  run(input, call) {
    const { command, cwd, env, processId, timeoutMs, keepsAwake } = input;
    const options = { cwd, env, processId, timeoutMs, keepsAwake, signal: call.signal };
    return withSandbox(call, input, async (sandbox) => {
      const started = await sandbox.startProcess(command, options);
      const facts = processBriefOf(await started.info());
      return { facts, text: `process ${facts.processId}, pid ${facts.pid}: ${statusText(facts)}` };
    });
  },
});
