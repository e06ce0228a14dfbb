import { type CommandState, HoldfastError, type LogEvent, type LogOptions, type Sandbox } from "holdfast";
import { z } from "zod";
import { statusOf } from "./process-brief.ts";

/** How a tool's caller names something that has a log and an end. */
export const programId = {
  processId: z.string().min(1).optional().describe("of sandbox_process_start"),
  commandId: z
    .string()
    .min(1)
    .optional()
    .describe("of sandbox_exec or sandbox_session_exec, instead of processId"),
};

interface Seen {
  readonly status: ReturnType<typeof statusOf>;
  readonly log: { readonly firstOffset: number; readonly nextOffset: number };
}

/** A background process or a command: to both one comes back by an id. */
export interface Program {
  readonly id: string;
  look(): Promise<Seen>;
  logs(options: LogOptions): AsyncGenerator<LogEvent>;
  /** With everything it started. */
  end(): Promise<void>;
}

export function programOf(
  sandbox: Sandbox,
  { processId, commandId }: { processId?: string | undefined; commandId?: string | undefined },
): Program {
  if (processId !== undefined && commandId === undefined) return processProgram(sandbox, processId);
  if (commandId !== undefined && processId === undefined) return commandProgram(sandbox, commandId);
  throw new HoldfastError("invalid_argument", "give a processId or a commandId, one of them", {
    hint: "sandbox_why lists the sandbox's processes",
    started: "no",
  });
}

function processProgram(sandbox: Sandbox, id: string): Program {
  return {
    id,
    async look() {
      const { status, log } = await (await sandbox.getProcess(id)).info();
      return { status: statusOf(status), log };
    },
    async *logs(options) {
      yield* (await sandbox.getProcess(id)).logs(options);
    },
    async end() {
      await (await sandbox.getProcess(id)).kill();
    },
  };
}

function commandProgram(sandbox: Sandbox, id: string): Program {
  return {
    id,
    look: async () => seenOf(await sandbox.getCommand(id)),
    logs: (options) => sandbox.commandLogs(id, options),
    end: () => sandbox.cancelCommand(id),
  };
}

function seenOf(state: CommandState): Seen {
  switch (state.status) {
    case "running":
      return { status: statusOf({ state: "running" }), log: state.log };
    case "exited":
      return { status: statusOf({ ...state, state: "exited" }), log: state.log };
    case "lost":
      return { status: statusOf({ ...state, state: "lost" }), log: { firstOffset: 0, nextOffset: 0 } };
  }
}
