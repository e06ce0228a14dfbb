import { z } from "zod";
import { CommandLost, CommandResult, CommandRunning, ExecRequest, ProcessRequest } from "./execution.ts";
import { lazily } from "./lazily.ts";
import { AbsolutePath, ChosenId, DurationMs, Env, TextWithoutNul } from "./names.ts";

export const SessionShellName = lazily(() => z.enum(["bash", "sh"]));
export type SessionShellName = z.infer<typeof SessionShellName>;

/** Parts of a shell's state. */
export const SessionCarries = lazily(() =>
  z.enum([
    "cwd",
    "variables",
    "arrays",
    "functions",
    "aliases",
    "options",
    "positional_parameters",
    "umask",
    "traps",
  ]),
);
export type SessionCarries = z.infer<typeof SessionCarries>;

export const CreateSession = lazily(() =>
  z.strictObject({
    sessionId: ChosenId.optional(),
    cwd: AbsolutePath.optional(),
    env: Env.optional(),
    /** For commands that are given no `timeoutMs` of their own. Without it they may take as long as they like. */
    commandTimeoutMs: DurationMs.min(1).optional(),
    /** Bash unless the sandbox has none. */
    shell: SessionShellName.optional(),
  }),
);
export type CreateSession = z.infer<typeof CreateSession>;

export const Session = lazily(() =>
  z.object({
    sessionId: z.string(),
    /** `asleep`: its state is on disk, and its shell is started with the next command. */
    state: z.enum(["idle", "running", "asleep"]),
    shell: SessionShellName,
    /** What of its state survives the death of its shell, of the keeper and of the instance. */
    carries: z.array(SessionCarries),
    /** Where it is now, or was when somebody last knew. */
    cwd: z.string(),
    createdAt: z.string(),
    commandTimeoutMs: z.number().int().optional(),
    /** The command that runs now. */
    running: z.string().optional(),
    /** Commands that wait for their turn, in order. */
    waiting: z.array(z.string()),
  }),
);
export type Session = z.infer<typeof Session>;

export const SessionList = lazily(() => z.object({ sessions: z.array(Session) }));

/** The text of a command for a session's shell. Directory and environment are the shell's own. */
export const SessionExecRequest = lazily(() => {
  const { cwd: _cwd, env: _env, command: _command, ...howToRun } = ExecRequest.shape;
  return z.strictObject({ ...howToRun, command: TextWithoutNul.min(1) });
});
export type SessionExecRequest = z.infer<typeof SessionExecRequest>;

/** A process that begins with a snapshot of the session's state; its directory is the session's. */
export const SessionProcessRequest = lazily(() => {
  const { cwd: _cwd, ...parts } = ProcessRequest.shape;
  return z.strictObject(parts);
});
export type SessionProcessRequest = z.infer<typeof SessionProcessRequest>;

/** Why a command found a shell that was made anew, and with how much of the state. */
export const SessionRestored = lazily(() =>
  z.object({
    because: z.enum(["shell_exited", "timed_out", "cancelled", "shell_unusable", "keeper_lost"]),
    /** The state after the command before; the last one written to disk; or none, a new shell. */
    from: z.enum(["savepoint", "checkpoint", "nothing"]),
    /** Commands that ended well, but whose effect on the state is lost. */
    commandsLost: z.number().int(),
  }),
);
export type SessionRestored = z.infer<typeof SessionRestored>;

/** A session's command that has ended. */
export const SessionCommandResult = lazily(() =>
  CommandResult.extend({
    sessionId: z.string(),
    /** The shell ended with this command: `exit`, `exec`, `set -e`, a signal. */
    shellExited: z.boolean(),
    /** Whether what this command did to the shell's state stays. If not, the next one finds the state before it. */
    stateKept: z.boolean(),
    /** False for a command that was cancelled while it waited. */
    ran: z.boolean(),
    restored: SessionRestored.optional(),
    /** The directory that the shell was in is gone; the command ran in the nearest one above it that exists. */
    cwdRecovered: z.object({ from: z.string(), to: z.string() }).optional(),
    /** The output begins with this much that background jobs wrote since the command before. */
    background: z
      .object({
        stdoutBytes: z.number().int(),
        stderrBytes: z.number().int(),
        /** More than was kept. */
        droppedBytes: z.number().int(),
      })
      .optional(),
  }),
);
export type SessionCommandResult = z.infer<typeof SessionCommandResult>;

export const SessionCommandState = lazily(() =>
  z.discriminatedUnion("status", [
    SessionCommandResult,
    CommandRunning.extend({ sessionId: z.string(), waiting: z.boolean() }),
    CommandLost,
  ]),
);
export type SessionCommandState = z.infer<typeof SessionCommandState>;
