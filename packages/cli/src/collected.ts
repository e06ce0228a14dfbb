import type { ExecResult, LogEvent, Process } from "holdfast";
import { execJob, type Start, startJob } from "./job.ts";
import { lost } from "./live.ts";

// The same as an exec's own default: what a caller gets does not depend on how its input came.
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** Runs a command to its end and gives its result as a whole, in the form of `exec`. */
export async function runCollected(start: Start): Promise<ExecResult> {
  if (start.stdin.kind !== "stream") return execJob(start);
  const { events, process } = await startJob(start);
  if (process === undefined) throw new Error("a stream of input always makes a process");
  const output = { stdout: new BoundedText(), stderr: new BoundedText() };
  for await (const event of events) {
    if (event.type === "lost") throw lost(event);
    if ("bytes" in event) output[event.type].add(event.bytes);
    if (event.type === "exit") return resultOf(start, { process, output, exit: event });
  }
  throw new Error("the log ended without the command's end");
}

interface Ended {
  process: Process;
  output: { stdout: BoundedText; stderr: BoundedText };
  exit: LogEvent & { type: "exit" };
}

async function resultOf({ sandbox }: Start, { process, output, exit }: Ended): Promise<ExecResult> {
  const { processId, shell, startedAt, endedAt, log } = await process.info();
  const { type: _, offset: __, ...ending } = exit;
  const { stdout, stderr } = output;
  return {
    ...ending,
    commandId: processId,
    status: "exited",
    shell,
    durationMs: Date.parse(endedAt ?? startedAt) - Date.parse(startedAt),
    stdout: stdout.text(),
    stderr: stderr.text(),
    truncated: { stdoutBytes: stdout.missingBytes, stderrBytes: stderr.missingBytes },
    log,
    generation: sandbox.generation,
    continuity: sandbox.continuity,
  };
}

/** The first part of a stream, and the count of the rest. */
class BoundedText {
  readonly #pieces: Uint8Array[] = [];
  #leftBytes = MAX_OUTPUT_BYTES;
  missingBytes = 0;

  add(bytes: Uint8Array): void {
    const kept = bytes.subarray(0, this.#leftBytes);
    this.#pieces.push(kept);
    this.#leftBytes -= kept.length;
    this.missingBytes += bytes.length - kept.length;
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString();
  }
}
