import { signalNames } from "@holdfast/protocol";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { processStatus, statusText } from "../process-brief.ts";
import { programId, programOf } from "../program.ts";
import { tool } from "../tool.ts";

export const processKill = tool({
  name: "sandbox_process_kill",
  title: "End a process",
  description:
    "Ends a background process, or a command that still runs, with everything it started, and answers when nothing of " +
    "it is left. With `sendSignal` it only sends that, to the process's group (SIGINT is Ctrl-C).",
  input: z.strictObject({
    ...which,
    ...programId,
    sendSignal: z.enum(signalNames).optional().describe("instead of ending it; for processes"),
  }),
  output: z.object({ ...presence, id: z.string(), ...processStatus }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  run(input, call) {
    const { processId, sendSignal } = input;
    return withSandbox(call, input, async (sandbox) => {
      const program = programOf(sandbox, input);
      if (sendSignal === undefined || processId === undefined) await program.end();
      else await (await sandbox.getProcess(processId)).signal(sendSignal, { target: "group" });
      const { status } = await program.look();
      return { facts: { id: program.id, ...status }, text: `${program.id}: ${statusText(status)}` };
    });
  },
});
