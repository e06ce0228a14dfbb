import type { ProcessInfo, ProcessStatus } from "holdfast";
import { z } from "zod";
import { shortened } from "./clean-text.ts";

/** How a process is, in the form that all tools give it. */
export const processStatus = {
  status: z.enum(["running", "exited", "lost"]),
  exitCode: z.number().optional(),
  signal: z.string().nullable().optional(),
  timedOut: z.boolean().optional(),
  oomKilled: z.boolean().optional(),
  reason: z.string().optional().describe("why it is lost"),
};
const Status = z.object(processStatus);
type Status = z.infer<typeof Status>;

export const ProcessBrief = z.object({
  processId: z.string(),
  pid: z.number().describe("as seen inside"),
  command: z.string(),
  startedAt: z.string(),
  ...processStatus,
});
type ProcessBrief = z.infer<typeof ProcessBrief>;

export function statusOf(status: ProcessStatus): Status {
  switch (status.state) {
    case "running":
      return { status: "running" };
    case "lost":
      return { status: "lost", reason: status.reason };
    case "exited": {
      const { exitCode, signal, timedOut, oomKilled } = status;
      return { status: "exited", exitCode, signal, timedOut, oomKilled };
    }
  }
}

export function statusText({ status, exitCode, signal, timedOut, oomKilled, reason }: Status): string {
  if (status === "running") return "running";
  if (status === "lost") return `lost: ${reason}. Start it again with sandbox_process_start if you need it.`;
  const how = timedOut
    ? ", by its timeout"
    : oomKilled
      ? ", for want of memory"
      : signal
        ? `, by ${signal}`
        : "";
  return `exited with code ${exitCode}${how}`;
}

export function processBriefOf({ processId, pid, command, startedAt, status }: ProcessInfo): ProcessBrief {
  const text = typeof command === "string" ? command : command.join(" ");
  return { processId, pid, command: shortened(text, 200), startedAt, ...statusOf(status) };
}
