import { type Command, HoldfastError, type LogEvent, type Sandbox } from "holdfast";
import { isBrokenPipe, write } from "./print.ts";
import { type TakenStdin, takeStdin } from "./stdin.ts";

export interface LiveOptions {
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  timeoutMs?: number | undefined;
  /** Whether what is piped to us goes to the command. */
  stdin: "passed" | "empty";
}

/** A command under way, on whichever surface it was started. */
interface Job {
  events: AsyncIterable<LogEvent>;
  /** Ends it with everything it started. */
  cancel(): Promise<void>;
}

// As a shell reports them: 128 + the number of the signal.
const exitCodeOf = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 } as const;

/**
 * Runs a command with its output passed on as it comes, and resolves to the exit code that is ours to leave with.
 * Ctrl-C, and a reader of our output that went away, end the command, too; a second Ctrl-C leaves at once.
 */
export async function runLive(sandbox: Sandbox, command: Command, options: LiveOptions): Promise<number> {
  const interruption = listenForSignals();
  try {
    const stdin = options.stdin === "passed" ? await takeStdin() : ({ kind: "none" } as const);
    const job = await startJob({ sandbox, command, options, stdin, signal: interruption.signal });
    const cancelled = whenAborted(interruption.signal, () => job.cancel());
    const exitCode = await passOn(job);
    await cancelled();
    return interruption.exitCode() ?? exitCode;
  } catch (error) {
    const exitCode = interruption.exitCode();
    if (exitCode !== undefined && error === interruption.signal.reason) return exitCode;
    throw error;
  } finally {
    interruption.forget();
  }
}

interface Start {
  sandbox: Sandbox;
  command: Command;
  options: LiveOptions;
  stdin: TakenStdin;
  signal: AbortSignal;
}

function startJob(start: Start): Promise<Job> {
  // A stream of input needs stdin that can be written later, which is what a process has and an exec has not.
  return start.stdin.kind === "stream" ? startAsProcess(start, start.stdin.chunks) : startAsExec(start);
}

async function startAsExec({ sandbox, command, options, stdin, signal }: Start): Promise<Job> {
  const { cwd, env, timeoutMs } = options;
  const input = stdin.kind === "whole" ? { stdin: stdin.bytes } : {};
  // The output is read from the log: none of it is wanted a second time in the answer.
  const started = await sandbox.exec(command, {
    cwd,
    env,
    timeoutMs,
    ...input,
    yieldMs: 0,
    maxOutputBytes: 0,
    signal,
  });
  return {
    events: sandbox.commandLogs(started.commandId, { follow: true }),
    cancel: () => sandbox.cancelCommand(started.commandId),
  };
}

async function startAsProcess(start: Start, chunks: AsyncIterable<Uint8Array>): Promise<Job> {
  const { cwd, env, timeoutMs } = start.options;
  const started = await start.sandbox.startProcess(start.command, {
    cwd,
    env,
    timeoutMs,
    signal: start.signal,
  });
  const feeding = feed(started, chunks);
  return { events: withFailureOf(feeding, started.logs({ follow: true })), cancel: () => started.kill() };
}

interface Fed {
  write(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
}

/** Passes our stdin on. A program that ends, or closes its stdin, before it has read everything is no failure. */
async function feed(program: Fed, chunks: AsyncIterable<Uint8Array>): Promise<void> {
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

async function passOn(job: Job): Promise<number> {
  for await (const event of job.events) {
    try {
      const exitCode = await show(event);
      if (exitCode !== undefined) return exitCode;
    } catch (error) {
      if (!isBrokenPipe(error)) throw error;
      // Nobody reads any more: as a local program would get SIGPIPE, so this one is ended.
      await job.cancel();
      return exitCodeOf.SIGPIPE;
    }
  }
  throw new HoldfastError("internal", "the command's log ended without its end", { started: "yes" });
}

/** Passes one event on; the end of the command gives its exit code. */
async function show(event: LogEvent): Promise<number | undefined> {
  switch (event.type) {
    case "stdout":
    case "stderr":
      await write(process[event.type], event.bytes);
      return undefined;
    case "truncated":
      await note(`${event.to - event.from} bytes of output are no longer in the log`);
      return undefined;
    case "exit":
      if (event.timedOut) await note("the command was ended by its timeout");
      if (event.oomKilled) await note("the command was killed because the sandbox ran out of memory");
      return event.exitCode;
    case "lost":
      throw new HoldfastError("keeper_lost", `how the command ended was not seen: ${event.reason}`, {
        started: "yes",
        hint: "It may have done its work, in part or whole. Look before you run it again.",
      });
    default:
      return event satisfies never;
  }
}

export function note(text: string): Promise<void> {
  return write(process.stderr, `holdfast: ${text}\n`);
}

interface Interruption {
  signal: AbortSignal;
  /** What a signal that came makes our exit code. */
  exitCode(): number | undefined;
  forget(): void;
}

function listenForSignals(): Interruption {
  const abort = new AbortController();
  let exitCode: number | undefined;
  const listeners = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((name) => {
    const listener = (): void => {
      if (exitCode !== undefined) process.exit(exitCode);
      exitCode = exitCodeOf[name];
      abort.abort(new Error(name));
    };
    process.on(name, listener);
    return () => process.off(name, listener);
  });
  return {
    signal: abort.signal,
    exitCode: () => exitCode,
    forget: () => {
      for (const forget of listeners) forget();
    },
  };
}

/** Does it once the signal aborts; the result is awaited by who needs it done. */
function whenAborted(signal: AbortSignal, act: () => Promise<void>): () => Promise<void> {
  let acting: Promise<void> | undefined;
  const onAbort = (): void => {
    acting = act();
    acting.catch(() => undefined); // told to who awaits it below
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return async () => {
    signal.removeEventListener("abort", onAbort);
    await acting;
  };
}
