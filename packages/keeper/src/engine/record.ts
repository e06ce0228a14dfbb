import type { Command, Ending, KeepsAwake, ShellUsed } from "@holdfast/protocol";
import {
  anything,
  atLeast,
  byTag,
  type Check,
  flag,
  integer,
  listOf,
  nullable,
  number,
  object,
  oneOf,
  optional,
  recordOf,
  text,
  which,
} from "@holdfast/protocol/plain-check";

/** `exec` and `session` are commands; only a `process` shows up in the list of processes. */
export type RunKind = "exec" | "process" | "session";

/** What is known when a run begins and needed to answer about it later, also after the keeper's death. No secrets. */
export interface RunFacts {
  shell: ShellUsed;
  maxOutputBytes?: number | undefined;
  encoding?: "utf8" | "base64" | undefined;
  command?: Command | undefined;
  cwd?: string | undefined;
  sessionId?: string | undefined;
  keepsAwake?: KeepsAwake | undefined;
}

/** How a run ended: the program's ending as observed, or that nobody was there to observe it. */
export interface RunEnd {
  at: number;
  result: (Ending & { state: "exited" }) | { state: "lost"; reason: string };
  written: { stdoutBytes: number; stderrBytes: number };
  log: { firstOffset: number; nextOffset: number };
  /** Where the log's files begin, see log-files.ts; none if nothing was written. */
  segments: number[];
  logBytesOnDisk: number;
  /** The whole log, if it has no file. */
  short?: string | undefined;
  /** What a surface adds to its own results, such as a session's `shellExited`. */
  extra?: Record<string, unknown> | undefined;
}

export interface RunRecord {
  id: string;
  kind: RunKind;
  fingerprint: string;
  startedAt: number;
  facts: RunFacts;
  pid?: number | undefined;
  end?: RunEnd | undefined;
}

export type FinishedRecord = RunRecord & { end: RunEnd };

/** For people: "command c1" or "process p1". */
export function nameOf({ kind, id }: RunRecord): string {
  return `${kind === "process" ? "process" : "command"} ${id}`;
}

/** What is read back after the keeper's death: the work inside can write there what it likes. */

const command: Check<Command> = which(
  anything as Check<Command>,
  (value) => (typeof value === "string" ? isText(value) && value !== "" : isArgv(value)),
  "Invalid input",
);

const facts: Check<RunFacts> = object({
  shell: oneOf(["bash", "sh", "none"]),
  maxOutputBytes: optional(integer),
  encoding: optional(oneOf(["utf8", "base64"])),
  command: optional(command),
  cwd: optional(text),
  sessionId: optional(text),
  keepsAwake: optional(oneOf(["always", "active", "never"])),
});

// More than this was not written by us.
const MAX_SHORT_LOG = 1024;
const MAX_SEGMENTS = 64;
const BASE64 = /^(?:[0-9A-Za-z+/]{4})*(?:[0-9A-Za-z+/]{2}==|[0-9A-Za-z+/]{3}=)?$/;

/** Frames of a short log, as base64; see log-writer.ts. */
export const shortLog = which(
  text,
  (value) => value.length <= MAX_SHORT_LOG && BASE64.test(value),
  "Invalid base64-encoded string",
);

const killReport = object({
  verified: oneOf(["cgroup", "lineage"]),
  killed: integer,
  survivors: listOf(integer),
  unattributed: listOf(object({ pid: integer, command: text })),
});

export const runEnd: Check<RunEnd> = object({
  at: number,
  result: byTag("state", {
    exited: object({
      state: oneOf(["exited"]),
      exitCode: integer,
      signal: nullable(text),
      timedOut: flag,
      cancelled: flag,
      oomKilled: flag,
      kill: optional(killReport),
    }),
    lost: object({ state: oneOf(["lost"]), reason: text }),
  }),
  written: object({ stdoutBytes: integer, stderrBytes: integer }),
  log: object({ firstOffset: integer, nextOffset: integer }),
  segments: which(
    listOf(atLeast(0, integer)),
    ({ length }) => length <= MAX_SEGMENTS,
    `Too big: expected array to have <=${MAX_SEGMENTS} items`,
  ),
  logBytesOnDisk: integer,
  short: optional(shortLog),
  extra: optional(recordOf(anything)),
});

export const runRecord: Check<RunRecord> = object({
  id: text,
  kind: oneOf(["exec", "process", "session"]),
  fingerprint: text,
  startedAt: number,
  facts,
  pid: optional(integer),
  end: optional(runEnd),
});

function isArgv(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isText) && value[0] !== "";
}

function isText(value: unknown): boolean {
  return typeof value === "string" && !value.includes("\0");
}
