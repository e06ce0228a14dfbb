import { Command, Ending, KeepsAwake, LogRange, lazily, ShellUsed } from "@holdfast/protocol";
import { z } from "zod";

/** `exec` and `session` are commands; only a `process` shows up in the list of processes. */
export const RunKind = lazily(() => z.enum(["exec", "process", "session"]));
export type RunKind = z.infer<typeof RunKind>;

/** What is known when a run begins and needed to answer about it later, also after the keeper's death. No secrets. */
export const RunFacts = lazily(() =>
  z.object({
    shell: ShellUsed,
    maxOutputBytes: z.number().int().optional(),
    encoding: z.enum(["utf8", "base64"]).optional(),
    command: Command.optional(),
    cwd: z.string().optional(),
    sessionId: z.string().optional(),
    keepsAwake: KeepsAwake.optional(),
  }),
);
export type RunFacts = z.infer<typeof RunFacts>;

/** Frames of a short log, as base64; see log-writer.ts. More was not written by us. */
export const ShortLog = lazily(() => z.base64().max(1024));

/** How a run ended: the program's ending as observed, or that nobody was there to observe it. */
export const RunEnd = lazily(() =>
  z.object({
    at: z.number(),
    result: z.discriminatedUnion("state", [
      Ending.extend({ state: z.literal("exited") }),
      z.object({ state: z.literal("lost"), reason: z.string() }),
    ]),
    written: z.object({ stdoutBytes: z.number().int(), stderrBytes: z.number().int() }),
    log: LogRange,
    /** Where the log's files begin, see log-files.ts; none if nothing was written. */
    segments: z.array(z.number().int().min(0)).max(64),
    logBytesOnDisk: z.number().int(),
    /** The whole log, if it has no file. */
    short: ShortLog.optional(),
    /** What a surface adds to its own results, such as a session's `shellExited`. */
    extra: z.record(z.string(), z.unknown()).optional(),
  }),
);
export type RunEnd = z.infer<typeof RunEnd>;

export const RunRecord = lazily(() =>
  z.object({
    id: z.string(),
    kind: RunKind,
    fingerprint: z.string(),
    startedAt: z.number(),
    facts: RunFacts,
    pid: z.number().int().optional(),
    end: RunEnd.optional(),
  }),
);
export type RunRecord = z.infer<typeof RunRecord>;

/** For people: "command c1" or "process p1". */
export function nameOf({ kind, id }: RunRecord): string {
  return `${kind === "process" ? "process" : "command"} ${id}`;
}

export type FinishedRecord = RunRecord & { end: RunEnd };
