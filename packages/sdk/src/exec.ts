import type { Command, CommandResult, CommandState, Continuity, Env } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { cancellable } from "./cancellable.ts";
import type { Answer } from "./client.ts";
import { makeId } from "./ids.ts";
import { type Conditions, conditionHeaders, type Scope, toStdin, type Waiting } from "./scope.ts";

/** How a command of `exec` runs. */
export interface ExecOptions extends RunOptions {
  /** Absolute. Default: the sandbox's workspace. */
  cwd?: string | undefined;
  /** On top of the sandbox's own environment; `null` unsets. */
  env?: Env | undefined;
}

/** What every command can be given, with or without a session. */
export interface RunOptions extends Conditions {
  /** Written to the command, then closed. Without it stdin is empty. */
  stdin?: string | Uint8Array | undefined;
  /** Ends the command and everything it started: `timedOut: true`, exit code 124, the output so far is kept. */
  timeoutMs?: number | undefined;
  /** The command's identity. The same id again attaches to the first run. Default: one that the SDK makes. */
  commandId?: string | undefined;
  /** Bound of each of stdout and stderr in the result; what is missing is counted in `truncated`. */
  maxOutputBytes?: number | undefined;
  /** `base64` gives output that is not text as it is. Default: `utf8`, with replacement characters. */
  encoding?: "utf8" | "base64" | undefined;
  /** Answer after this time even if the command still runs, with `status: "running"`. */
  yieldMs?: number | undefined;
  /** Aborting cancels the command, with everything it started. */
  signal?: AbortSignal | undefined;
}

/** Which incarnation of the sandbox answered. */
export interface Seen {
  generation: number;
  continuity: Continuity;
}

/** A command that ended, whatever its exit code. */
export type ExecResult = CommandResult & Seen;

/** A command as it is now: `running`, `exited`, or `lost` with its instance. */
export type ExecState = CommandState & Seen;

// Under the idle limits of common proxies (30 s and more) and of Node's and Bun's own fetch (300 s).
const LONGEST_WAIT_MS = 20_000;

/** Runs one command to its end. */
export async function exec(
  scope: Scope,
  command: Command,
  options: ExecOptions & { yieldMs: number },
): Promise<ExecState>;
export async function exec(scope: Scope, command: Command, options: ExecOptions): Promise<ExecResult>;
export async function exec(scope: Scope, command: Command, options: ExecOptions): Promise<ExecState> {
  const { cwd, env } = options;
  return runToEnd<CommandState>({ scope, path: `${scope.path}/exec`, what: { command, cwd, env }, options });
}

interface Run {
  scope: Scope;
  /** Where it is sent. */
  path: string;
  /** What to run: the part of the request that differs from one surface to the other. */
  what: Record<string, unknown>;
  options: RunOptions;
}

/** Over as many requests as it takes; each attaches to the same run by its id. An abort cancels it. */
export async function runToEnd<T extends CommandState>(run: Run): Promise<T & Seen> {
  const { scope, options } = run;
  const commandId = options.commandId ?? makeId("cmd");
  return cancellable({
    work: (unwanted) => attachUntilDone<T>({ ...run, commandId, unwanted }),
    cancel: () => cancelCommand(scope, commandId),
    signal: options.signal,
    what: `command ${commandId}`,
  });
}

async function attachUntilDone<T extends CommandState>(
  run: Run & { commandId: string; unwanted: AbortSignal | undefined },
): Promise<T & Seen> {
  const { scope, path, options, unwanted } = run;
  const { yieldMs } = options;
  // Equal parts, so that every one of the requests is the same and all of them together take exactly `yieldMs`.
  const parts = yieldMs === undefined ? Number.POSITIVE_INFINITY : Math.ceil(yieldMs / LONGEST_WAIT_MS);
  const waitMs = yieldMs === undefined ? LONGEST_WAIT_MS : Math.ceil(yieldMs / Math.max(parts, 1));
  const json = requestOf(run, waitMs);
  const headers = conditionHeaders(options);
  for (let part = 1; ; part++) {
    const call = { method: "POST", path, json, headers, again: "safe", signal: unwanted } as const;
    const state = withSeen(await scope.client.json<T>(call));
    if (state.status === "lost" && yieldMs === undefined) throw lost(state);
    if (state.status !== "running" || part >= parts) return state;
  }
}

function requestOf(run: Run & { commandId: string }, yieldMs: number): Record<string, unknown> {
  const { stdin, timeoutMs, maxOutputBytes, encoding } = run.options;
  return {
    ...run.what,
    commandId: run.commandId,
    yieldMs,
    timeoutMs,
    maxOutputBytes,
    encoding,
    ...(stdin !== undefined && { stdin: toStdin(stdin) }),
  };
}

/** What became of a command, also one of an earlier process or another client. */
export async function getCommand(scope: Scope, commandId: string, { signal }: Waiting): Promise<ExecState> {
  const path = commandPath(scope, commandId);
  return withSeen(await scope.client.json<CommandState>({ method: "GET", path, again: "safe", signal }));
}

/** Ends a command with everything it started. Cancelling one that has ended changes nothing. */
export async function cancelCommand(
  scope: Scope,
  commandId: string,
  { signal }: Waiting = {},
): Promise<void> {
  const path = `${commandPath(scope, commandId)}/cancel`;
  await scope.client.json({ method: "POST", path, again: "safe", signal });
}

export function commandPath(scope: Scope, commandId: string): string {
  return `${scope.path}/commands/${encodeURIComponent(commandId)}`;
}

function withSeen<T extends CommandState>(answer: Answer<T>): T & Seen {
  return { ...answer.body, generation: answer.generation, continuity: answer.continuity };
}

function lost(state: { commandId: string; reason: string } & Seen): HoldfastError {
  const { commandId, reason, generation, continuity } = state;
  return new HoldfastError("keeper_lost", `how the command ended was not seen: ${reason}`, {
    details: { commandId, generation, continuity },
    hint: "It was started and may have done its work, in part or whole. Look before you run it again.",
    started: "yes",
  });
}
