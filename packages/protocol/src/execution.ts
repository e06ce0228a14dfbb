import { z } from "zod";
import { lazily } from "./lazily.ts";
import { AbsolutePath, ChosenId, DurationMs, Env, TextWithoutNul } from "./names.ts";

/** A string runs in a fresh shell; an array is executed as it is, with no shell. */
export const Command = lazily(() =>
  z.union([
    TextWithoutNul.min(1),
    z
      .array(TextWithoutNul)
      .min(1)
      .refine((argv) => argv[0] !== "", "the program's name is empty"),
  ]),
);
export type Command = z.infer<typeof Command>;

/** Text, or bytes that are not text. */
export const Stdin = lazily(() => z.union([z.string(), z.strictObject({ base64: z.base64() })]));

const what = () => ({
  command: Command,
  cwd: AbsolutePath.optional(),
  env: Env.optional(),
  timeoutMs: DurationMs.min(1).optional(),
});

export const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;

export const ExecRequest = lazily(() =>
  z.strictObject({
    ...what(),
    stdin: Stdin.optional(),
    commandId: ChosenId.optional(),
    /** Bound of each of stdout and stderr in the answer; the rest is counted, and is in the command's log. */
    maxOutputBytes: z
      .number()
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .optional(),
    encoding: z.enum(["utf8", "base64"]).optional(),
    yieldMs: DurationMs.optional(),
  }),
);
export type ExecRequest = z.infer<typeof ExecRequest>;

/** How a forced end was checked, and what in the sandbox could be neither attributed to the command nor ruled out. */
export const KillReport = lazily(() =>
  z.object({
    verified: z.enum(["cgroup", "lineage"]),
    killed: z.number().int(),
    survivors: z.array(z.number().int()),
    unattributed: z.array(z.object({ pid: z.number().int(), command: z.string() })),
  }),
);
export type KillReport = z.infer<typeof KillReport>;

/** What happened to a program, as observed. `exitCode` is 128 + n after a death by signal n, and 124 after a timeout. */
export const Ending = lazily(() =>
  z.object({
    exitCode: z.number().int(),
    signal: z.string().nullable(),
    timedOut: z.boolean(),
    cancelled: z.boolean(),
    oomKilled: z.boolean(),
    kill: KillReport.optional(),
  }),
);
export type Ending = z.infer<typeof Ending>;

/** Which shell ran a command given as a string; `none` for an argument array. */
export const ShellUsed = lazily(() => z.enum(["bash", "sh", "none"]));
export type ShellUsed = z.infer<typeof ShellUsed>;

export const LogRange = lazily(() =>
  z.object({ firstOffset: z.number().int(), nextOffset: z.number().int() }),
);

export const CommandResult = lazily(() =>
  Ending.extend({
    commandId: z.string(),
    status: z.literal("exited"),
    shell: ShellUsed,
    durationMs: z.number(),
    stdout: z.string(),
    stderr: z.string(),
    /** Bytes that are missing from `stdout` and `stderr` because of `maxOutputBytes`. */
    truncated: z.object({ stdoutBytes: z.number().int(), stderrBytes: z.number().int() }),
    log: LogRange,
  }),
);
export type CommandResult = z.infer<typeof CommandResult>;

export const CommandRunning = lazily(() =>
  z.object({
    commandId: z.string(),
    status: z.literal("running"),
    shell: ShellUsed,
    durationMs: z.number(),
    log: LogRange,
  }),
);

export const CommandLost = lazily(() =>
  z.object({
    commandId: z.string(),
    status: z.literal("lost"),
    reason: z.string(),
  }),
);

export const CommandState = lazily(() =>
  z.discriminatedUnion("status", [CommandResult, CommandRunning, CommandLost]),
);
export type CommandState = z.infer<typeof CommandState>;

/**
 * Whether a process holds its sandbox awake: while it runs; while it does something, that is, burns CPU or writes
 * output; or not at all.
 */
export const KeepsAwake = lazily(() => z.enum(["always", "active", "never"]));
export type KeepsAwake = z.infer<typeof KeepsAwake>;

export const ProcessRequest = lazily(() =>
  z.strictObject({
    ...what(),
    /** Given, it is written and closed. Absent, stdin stays open for `write`. */
    stdin: Stdin.optional(),
    processId: ChosenId.optional(),
    /** `active` if left out. */
    keepsAwake: KeepsAwake.optional(),
  }),
);
export type ProcessRequest = z.infer<typeof ProcessRequest>;

export const ProcessStatus = lazily(() =>
  z.discriminatedUnion("state", [
    z.object({ state: z.literal("running") }),
    Ending.extend({ state: z.literal("exited") }),
    z.object({ state: z.literal("lost"), reason: z.string() }),
  ]),
);
export type ProcessStatus = z.infer<typeof ProcessStatus>;

export const Process = lazily(() =>
  z.object({
    processId: z.string(),
    /** As seen inside the sandbox. */
    pid: z.number().int(),
    command: Command,
    cwd: z.string(),
    shell: ShellUsed,
    status: ProcessStatus,
    startedAt: z.string(),
    endedAt: z.string().optional(),
    log: LogRange,
    /** The session from whose state it was started. */
    sessionId: z.string().optional(),
    /** As it was asked for. */
    keepsAwake: KeepsAwake.optional(),
  }),
);
export type Process = z.infer<typeof Process>;

export const ProcessList = lazily(() => z.object({ processes: z.array(Process) }));

/** The answer of `wait-for-port`, also when its time is up: `listening` says whether this process's tree has the port. */
export const PortWait = lazily(() =>
  z.object({ port: z.number().int(), listening: z.boolean(), status: ProcessStatus }),
);
export type PortWait = z.infer<typeof PortWait>;

export const signalNames = [
  "SIGHUP",
  "SIGINT",
  "SIGQUIT",
  "SIGABRT",
  "SIGKILL",
  "SIGUSR1",
  "SIGUSR2",
  "SIGALRM",
  "SIGTERM",
  "SIGCONT",
  "SIGSTOP",
  "SIGTSTP",
  "SIGWINCH",
] as const;

/** `target` says who gets it: the program itself, or its whole process group, as a terminal's Ctrl-C does. */
export const SignalRequest = lazily(() =>
  z.strictObject({
    signal: z.enum(signalNames),
    target: z.enum(["process", "group"]).optional(),
  }),
);
export type SignalRequest = z.infer<typeof SignalRequest>;
