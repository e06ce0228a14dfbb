import type { CommandState } from "@holdfast/protocol";
import { DEFAULT_MAX_OUTPUT_BYTES } from "@holdfast/protocol";
import type { Claim, Engine } from "./engine.ts";
import { asText, type Output, readOutput } from "./output.ts";
import type { FinishedRecord } from "./record.ts";
import type { Run } from "./run.ts";

/** What a surface may add to a state, such as a session's `shellExited`. */
export type CommandAnswer = CommandState & Record<string, unknown>;

/** The answer about a command once it has ended, or as it is after `yieldMs`. */
export async function answerFor(
  engine: Engine,
  claim: Claim,
  options: { yieldMs: number | undefined },
): Promise<CommandAnswer> {
  if (claim.state === "finished") return finishedState(engine, claim.record);
  const { run } = claim;
  const finished = await within(run.finished, options.yieldMs);
  if (finished === undefined) return runningState(engine, run);
  return finishedState(engine, finished.record, finished.output);
}

export function runningState(engine: Engine, run: Run): CommandAnswer {
  return {
    ...run.notes,
    commandId: run.id,
    status: "running",
    shell: run.record.facts.shell,
    durationMs: engine.now - run.record.startedAt,
    log: run.log.range,
  };
}

/** The output is read from disk again if the run that had it in memory is over. */
export function finishedState(engine: Engine, record: FinishedRecord, output?: Output): CommandAnswer {
  const { end, facts, id } = record;
  if (end.result.state === "lost") return { commandId: id, status: "lost", reason: end.result.reason };
  const { state: _, ...ending } = end.result;
  const encoding = facts.encoding ?? "utf8";
  const got =
    output ?? readOutput(sourceOf(engine, record), facts.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES);
  const stdout = asText(got.stdout, { total: end.written.stdoutBytes, encoding });
  const stderr = asText(got.stderr, { total: end.written.stderrBytes, encoding });
  return {
    ...end.extra,
    ...ending,
    commandId: id,
    status: "exited",
    shell: facts.shell,
    durationMs: end.at - record.startedAt,
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: { stdoutBytes: stdout.missing, stderrBytes: stderr.missing },
    log: end.log,
  };
}

/** The log of a run that is over, for a reader. */
export function sourceOf(engine: Engine, record: FinishedRecord) {
  const { log: range, segments: starts, short } = record.end;
  const frames = short === undefined ? undefined : Buffer.from(short, "base64");
  return { id: record.id, dir: engine.records.logDir, starts, short: frames, range };
}

/** `undefined` if it takes longer. */
async function within<T>(promise: Promise<T>, ms: number | undefined): Promise<T | undefined> {
  if (ms === undefined) return promise;
  let timer: Timer | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
