import { HoldfastError, type LogEvent, type Sandbox } from "holdfast";
import { FAILED_TO_RUN } from "./failure.ts";
import { type Job, type Start, startJob } from "./job.ts";
import { isBrokenPipe, write } from "./print.ts";

// 128 + SIGPIPE: what a shell would report of a local program in the same place.
const BROKEN_PIPE = 141;

const STATE_UNDONE = "the shell ended with this command: the session is as it was before it";

/** Runs a command with its output passed on as it comes, and resolves to the exit code that is ours to leave with. */
export async function runLive(start: Start): Promise<number> {
  const job = await startJob(start);
  try {
    return await follow(job);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "wrong_state") throw error;
    throw await explained(start.sandbox, error);
  }
}

async function follow(job: Job): Promise<number> {
  let lostBytes = 0;
  for await (const event of job.events) {
    if (event.type === "truncated") lostBytes += event.to - event.from;
    if (event.type === "lost") throw lost(event);
    if (event.type === "exit") {
      if ((await job.stateKept?.()) === false) await note(STATE_UNDONE);
      return exitCodeOf(event, lostBytes);
    }
    if ("bytes" in event && !(await passOn(event, job))) return BROKEN_PIPE;
  }
  throw new HoldfastError("internal", "the command's log ended without its end", { started: "yes" });
}

async function passOn(event: LogEvent & { type: "stdout" | "stderr" }, job: Job): Promise<boolean> {
  try {
    await write(process[event.type], event.bytes);
    return true;
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
    // Nobody reads any more. A local program would get SIGPIPE; this one is ended.
    await job.cancel();
    return false;
  }
}

async function exitCodeOf(event: LogEvent & { type: "exit" }, lostBytes: number): Promise<number> {
  if (event.timedOut) await note("the command was ended by its timeout");
  if (event.oomKilled) await note("the command was killed because the sandbox ran out of memory");
  if (lostBytes === 0) return event.exitCode;
  await note(`${lostBytes} bytes of output are missing: the log had dropped them before we could read them`);
  // What was printed is not what the command wrote: a pipeline must not take that for a success.
  return event.exitCode === 0 ? FAILED_TO_RUN : event.exitCode;
}

/** A sandbox that ended under its command: the cause is in its timeline, and is what the user wants to know. */
async function explained(sandbox: Sandbox, error: HoldfastError): Promise<HoldfastError> {
  const { lastDeath } = (await sandbox.refresh()).info;
  return lastDeath === undefined ? error : lost({ reason: `${lastDeath.cause}: ${lastDeath.detail}` });
}

export function lost(event: { reason: string }): HoldfastError {
  return new HoldfastError("keeper_lost", `how the command ended was not seen: ${event.reason}`, {
    started: "yes",
    hint: "It may have done its work, in part or whole. Look before you run it again.",
  });
}

export function note(text: string): Promise<void> {
  return write(process.stderr, `holdfast: ${text}\n`);
}
