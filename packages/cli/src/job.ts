import {
  type Command,
  type ExecState,
  HoldfastError,
  type LogEvent,
  type Process,
  type RunOptions,
  type Sandbox,
  type Session,
} from "holdfast";
import { commandText } from "./command-line.ts";
import { UsageError } from "./failure.ts";
import type { TakenStdin } from "./stdin.ts";

interface JobOptions {
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  timeoutMs?: number | undefined;
}

/** A command to be started: where, what, with which input. */
export interface Start {
  sandbox: Sandbox;
  /** The shell to run it in; without one it is on its own. */
  session?: Session | undefined;
  command: Command;
  options: JobOptions;
  stdin: TakenStdin;
  /** Aborting ends the command with everything it started. */
  signal: AbortSignal;
}

/** A command under way, on whichever surface it was started. */
export interface Job {
  /** Its output until its end. Throws if its input could not be passed on. */
  events: AsyncGenerator<LogEvent>;
  /** Ends it with everything it started. */
  cancel(): Promise<void>;
  /** Set if it had to become a process. */
  process?: Process;
  /** Of a session's command that has ended: whether what it did to the shell stays. */
  stateKept?(): Promise<boolean>;
}

/** A stream of input needs a stdin that can be written later, which is what a process has and an exec has not. */
export function startJob(start: Start): Promise<Job> {
  return start.stdin.kind === "stream" ? startAsProcess(start, start.stdin.chunks) : startAsExec(start);
}

/** Runs it without a stream of input, on the surface that was asked for. */
export function execJob(start: Start, options: RunOptions & { yieldMs: number }): Promise<ExecState>;
export function execJob(start: Start, options?: RunOptions): Promise<ExecState & { status: "exited" }>;
export function execJob(start: Start, options: RunOptions = {}): Promise<ExecState> {
  const { sandbox, session, command, stdin, signal } = start;
  const input = stdin.kind === "whole" ? { stdin: stdin.bytes } : {};
  if (session === undefined) return sandbox.exec(command, { ...start.options, ...input, ...options, signal });
  const { timeoutMs } = start.options;
  return session.exec(commandText(command), { timeoutMs, ...input, ...options, signal });
}

async function startAsExec(start: Start): Promise<Job> {
  const { sandbox, signal } = start;
  // The output is read from the log: none of it is wanted a second time in the answer.
  const started = await execJob(start, { yieldMs: 0, maxOutputBytes: 0 });
  const cancel = (): Promise<void> => sandbox.cancelCommand(started.commandId);
  return {
    events: endedBy(signal, cancel, sandbox.commandLogs(started.commandId, { follow: true })),
    cancel,
    ...(start.session !== undefined && { stateKept: () => stateKept(sandbox, started.commandId) }),
  };
}

async function stateKept(sandbox: Sandbox, commandId: string): Promise<boolean> {
  const ended = await sandbox.getCommand(commandId);
  return !("stateKept" in ended) || ended.stateKept === true;
}

async function startAsProcess(start: Start, chunks: AsyncIterable<Uint8Array>): Promise<Job> {
  const { sandbox, session, command, options, signal } = start;
  if (session !== undefined) {
    throw new UsageError(
      "input to a session's command must be short and come at once",
      "Put it into a file of the sandbox first: holdfast cp FILE SANDBOX:/tmp/",
    );
  }
  const process = await sandbox.startProcess(command, { ...options, signal });
  const cancel = (): Promise<void> => process.kill();
  const events = withFailureOf(feed(process, chunks), process.logs({ follow: true }));
  return { events: endedBy(signal, cancel, events), cancel, process };
}

/** Passes our stdin on. A program that ends, or closes its stdin, before it has read everything is no failure. */
async function feed(program: Process, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) await program.write(chunk);
    await program.closeStdin();
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "wrong_state") throw error;
  }
}

/** The events, unless the work beside them fails first: half an input must not look like the whole of it. */
async function* withFailureOf(
  beside: Promise<void>,
  events: AsyncGenerator<LogEvent>,
): AsyncGenerator<LogEvent> {
  const failure = beside.then(() => new Promise<never>(() => undefined));
  failure.catch(() => undefined);
  for (;;) {
    const next = await Promise.race([events.next(), failure]);
    if (next.done) return;
    yield next.value;
  }
}

/** The events, with the signal's abort turned into a cancel; what came until then is still passed on. */
async function* endedBy(
  signal: AbortSignal,
  cancel: () => Promise<void>,
  events: AsyncGenerator<LogEvent>,
): AsyncGenerator<LogEvent> {
  let cancelling: Promise<void> | undefined;
  const onAbort = (): void => {
    cancelling = cancel();
    cancelling.catch(() => undefined); // told below, once the events have ended
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    yield* events;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await cancelling;
  }
}
