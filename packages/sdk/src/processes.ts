import type {
  Command,
  Env,
  PortWait,
  Process as ProcessInfo,
  ProcessRequest,
  ProcessStatus,
  SignalRequest,
} from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import type { LogEvent } from "@holdfast/protocol/log-frames";
import { cancellable } from "./cancellable.ts";
import { makeId } from "./ids.ts";
import { type LogOptions, readLogs } from "./logs.ts";
import { type Conditions, conditionHeaders, type Scope, toStdin, type Waiting, whileHeld } from "./scope.ts";
import { type LogMatch, type WaitForLogOptions, waitForLog } from "./wait-for-log.ts";

/** How a process runs. */
export interface StartProcessOptions extends Conditions {
  /** Absolute. Default: the sandbox's workspace. */
  cwd?: string | undefined;
  /** On top of the sandbox's own environment; `null` unsets. */
  env?: Env | undefined;
  /** Written, then closed. Without it stdin stays open for `write`. */
  stdin?: string | Uint8Array | undefined;
  /** Ends the process and everything it started after this time. */
  timeoutMs?: number | undefined;
  /** The process's identity. The same id again attaches to the first start. Default: one that the SDK makes. */
  processId?: string | undefined;
  /**
   * Whether it holds off the reaper: `active` (the default) while it burns CPU or writes output, `always` while it
   * runs, `never`.
   */
  keepsAwake?: ProcessRequest["keepsAwake"];
  /** Aborting while the start is under way ends what was started. */
  signal?: AbortSignal | undefined;
}

/** How long to wait. */
export interface WaitOptions {
  /** Stop waiting after this time. The process goes on. */
  timeoutMs?: number | undefined;
  /** Aborting stops the waiting. The process goes on. */
  signal?: AbortSignal | undefined;
}

/** The signals that can be sent. */
export type SignalName = SignalRequest["signal"];

// As for exec: under the idle limits of common proxies.
const LONGEST_WAIT_MS = 20_000;

/**
 * A program that runs on by itself: it outlives the request, this client and the server.
 *
 * @example
 * ```ts
 * const build = await sbx.startProcess("npm run build");
 * for await (const event of build.logs({ follow: true })) {
 *   if (event.type === "stdout") process.stdout.write(event.bytes);
 * }
 * ```
 */
export class Process {
  readonly processId: string;
  /** As seen inside the sandbox. */
  readonly pid: number;
  readonly command: Command;
  readonly cwd: string;
  readonly startedAt: string;
  readonly #scope: Scope;
  readonly #path: string;

  /** @internal */
  constructor(scope: Scope, info: ProcessInfo) {
    this.processId = info.processId;
    this.pid = info.pid;
    this.command = info.command;
    this.cwd = info.cwd;
    this.startedAt = info.startedAt;
    this.#scope = scope;
    this.#path = processPath(scope, info.processId);
  }

  /**
   * Everything that is known about it now.
   *
   * @example
   * ```ts
   * const { log } = await build.info();
   * console.log(log.nextOffset, "bytes so far");
   * ```
   */
  async info({ signal }: Waiting = {}): Promise<ProcessInfo> {
    const { client } = this.#scope;
    return (await client.json<ProcessInfo>({ method: "GET", path: this.#path, again: "safe", signal })).body;
  }

  /**
   * `running`, `exited` with how, or `lost` with why.
   *
   * @example
   * ```ts
   * if ((await build.status()).state === "running") console.log("still at it");
   * ```
   */
  async status(options: Waiting = {}): Promise<ProcessStatus> {
    return (await this.info(options)).status;
  }

  /**
   * Its output as events, from any offset. Reconnects by itself and continues at the next byte, also through a
   * restart of the server; what the log no longer has is told as `truncated`.
   *
   * @example
   * ```ts
   * for await (const event of build.logs({ follow: true, since: 12 })) {
   *   if (event.type === "exit") console.log("exit code", event.exitCode);
   * }
   * ```
   */
  logs(options: LogOptions = {}): AsyncGenerator<LogEvent> {
    const signal = whileHeld(this.#scope, options.signal);
    return readLogs(this.#scope.client, `${this.#path}/logs`, { ...options, signal });
  }

  /**
   * Waits for its end and says how it came; `{ state: "running" }` if `timeoutMs` passed first. Never kills.
   *
   * @example
   * ```ts
   * const status = await build.wait({ timeoutMs: 60_000 });
   * if (status.state === "exited" && status.exitCode === 0) console.log("built");
   * ```
   */
  async wait(options: WaitOptions = {}): Promise<ProcessStatus> {
    const ask = (timeoutMs: number): Promise<ProcessStatus> =>
      this.#longPoll<ProcessInfo>("wait", { timeoutMs }, options).then((info) => info.status);
    return inParts(options.timeoutMs, ask, (status) => status.state !== "running");
  }

  /**
   * Waits until this process, or one it started, listens on a TCP port. A port of somebody else does not count.
   * Default: 60 s.
   *
   * @example
   * ```ts
   * await server.waitForPort(3000, { timeoutMs: 10_000 });
   * ```
   */
  async waitForPort(port: number, options: WaitOptions = {}): Promise<void> {
    const ask = (timeoutMs: number): Promise<PortWait> =>
      this.#longPoll<PortWait>("wait-for-port", { port, timeoutMs }, options);
    const timeoutMs = options.timeoutMs ?? 60_000;
    const last = await inParts(timeoutMs, ask, (seen) => seen.listening || seen.status.state !== "running");
    if (!last.listening) throw neverListened({ processId: this.processId, timeoutMs, seen: last });
  }

  /**
   * Waits for a text or a regular expression in the output, from its beginning or from `since`. Default: 60 s.
   *
   * @example
   * ```ts
   * const { match } = await server.waitForLog(/listening on (\S+)/);
   * console.log(match[1]);
   * ```
   */
  waitForLog(pattern: string | RegExp, options: WaitForLogOptions = {}): Promise<LogMatch> {
    return waitForLog(
      { logs: (logOptions) => this.logs(logOptions), processId: this.processId },
      pattern,
      options,
    );
  }

  /**
   * Writes to its stdin; resolves when it was taken. Not repeated if the answer is lost: bytes might come twice.
   *
   * @example
   * ```ts
   * await repl.write("print(1 + 1)\n");
   * ```
   */
  async write(data: string | Uint8Array, options: Waiting = {}): Promise<void> {
    const body = typeof data === "string" ? new TextEncoder().encode(data) : data;
    const path = `${this.#path}/stdin`;
    await this.#scope.client.json({ method: "POST", path, body, again: "never", signal: options.signal });
  }

  /**
   * Ends its stdin. Once closed, closing again changes nothing.
   *
   * @example
   * ```ts
   * await repl.closeStdin();   // as Ctrl-D does
   * ```
   */
  async closeStdin(options: Waiting = {}): Promise<void> {
    await this.#post("stdin/close", "safe", options);
  }

  /**
   * Sends a signal to the program itself, or with `target: "group"` to its whole group, as Ctrl-C does.
   *
   * @example
   * ```ts
   * await server.signal("SIGHUP");
   * ```
   */
  async signal(
    name: SignalName,
    { target, signal }: Waiting & { target?: "process" | "group" | undefined } = {},
  ): Promise<void> {
    await this.#post("signal", "never", { signal, json: { signal: name, target } });
  }

  /**
   * Ends it with everything it started, and resolves when nothing of it is left.
   *
   * @example
   * ```ts
   * await server.kill();
   * ```
   */
  async kill(options: Waiting = {}): Promise<void> {
    await this.#post("kill", "safe", options);
  }

  async #post(
    action: string,
    again: "safe" | "never",
    more: Waiting & { json?: SignalRequest },
  ): Promise<void> {
    await this.#scope.client.json({ method: "POST", path: `${this.#path}/${action}`, again, ...more });
  }

  async #longPoll<T>(action: string, query: Record<string, number>, options: WaitOptions): Promise<T> {
    const signal = whileHeld(this.#scope, options.signal);
    const path = `${this.#path}/${action}`;
    return (await this.#scope.client.json<T>({ method: "GET", path, query, again: "safe", signal })).body;
  }
}

/** Starts a program; once this resolves, it runs. */
export async function startProcess(
  scope: Scope,
  command: Command,
  options: StartProcessOptions,
): Promise<Process> {
  const { cwd } = options;
  return launchProcess({ scope, path: `${scope.path}/processes`, what: { command, cwd }, options });
}

/** `path` and `what` differ with where it is started from: the sandbox, or a session. */
export async function launchProcess(launch: {
  scope: Scope;
  path: string;
  what: { command: Command; cwd?: string | undefined };
  options: Omit<StartProcessOptions, "cwd">;
}): Promise<Process> {
  const { scope, path, what, options } = launch;
  const { env, timeoutMs, stdin, keepsAwake, processId = makeId("proc"), signal } = options;
  const input = stdin === undefined ? {} : { stdin: toStdin(stdin) };
  const json = { ...what, processId, env, timeoutMs, keepsAwake, ...input };
  const headers = conditionHeaders(options);
  return cancellable({
    work: async (unwanted) => {
      const call = { method: "POST", path, json, headers, again: "safe", signal: unwanted } as const;
      return new Process(scope, (await scope.client.json<ProcessInfo>(call)).body);
    },
    cancel: () =>
      scope.client.json({ method: "POST", path: `${processPath(scope, processId)}/kill`, again: "safe" }),
    signal,
    what: `process ${processId}`,
  });
}

export async function getProcess(scope: Scope, processId: string, { signal }: Waiting): Promise<Process> {
  const answer = await scope.client.json<ProcessInfo>({
    method: "GET",
    path: processPath(scope, processId),
    again: "safe",
    signal,
  });
  return new Process(scope, answer.body);
}

export async function listProcesses(
  scope: Scope,
  { sessionId, signal }: Waiting & { sessionId?: string | undefined },
): Promise<ProcessInfo[]> {
  const query = { sessionId };
  const call = { method: "GET", path: `${scope.path}/processes`, query, again: "safe", signal } as const;
  return (await scope.client.json<{ processes: ProcessInfo[] }>(call)).body.processes;
}

function processPath(scope: Scope, processId: string): string {
  return `${scope.path}/processes/${encodeURIComponent(processId)}`;
}

/** Asks in waits short enough for any proxy, until the answer is final or the time is up. */
async function inParts<T>(
  timeoutMs: number | undefined,
  ask: (timeoutMs: number) => Promise<T>,
  isFinal: (answer: T) => boolean,
): Promise<T> {
  const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs;
  for (;;) {
    const leftMs = Math.max(0, deadline - Date.now());
    const answer = await ask(Math.min(leftMs, LONGEST_WAIT_MS));
    if (isFinal(answer) || leftMs <= LONGEST_WAIT_MS) return answer;
  }
}

function neverListened(of: { processId: string; timeoutMs: number; seen: PortWait }): HoldfastError {
  const { port, status } = of.seen;
  const ended = status.state !== "running";
  const message = ended
    ? `process ${of.processId} ended before it listened on port ${port}`
    : `process ${of.processId} does not listen on port ${port} after ${of.timeoutMs} ms`;
  return new HoldfastError("wrong_state", message, {
    details: { processId: of.processId, port, status },
    hint: ended ? "Read its log to see why." : "Read its log; it may listen on another port, or need longer.",
    retryable: !ended,
  });
}
