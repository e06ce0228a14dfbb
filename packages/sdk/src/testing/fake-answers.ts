import type { CommandState, Process } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import type { FakeRun } from "./fake-run.ts";

/** What the API says of a command. */
export function commandState(run: FakeRun): CommandState {
  const log = { firstOffset: 0, nextOffset: run.nextOffset };
  const common = { commandId: run.id, shell: "bash", durationMs: 1, log } as const;
  if (run.ending === undefined) return { ...common, status: "running" };
  const truncated = { stdoutBytes: 0, stderrBytes: 0 };
  const output = { stdout: run.text("stdout"), stderr: run.text("stderr"), truncated };
  return { ...common, ...run.ending, ...output, status: "exited" };
}

/** What the API says of a process. */
export function processOf(run: FakeRun): Process {
  return {
    processId: run.id,
    pid: run.pid,
    command: run.command,
    cwd: "/workspace",
    shell: "bash",
    status: run.ending === undefined ? { state: "running" } : { state: "exited", ...run.ending },
    startedAt: run.startedAt,
    log: { firstOffset: 0, nextOffset: run.nextOffset },
  };
}

export function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

export function asResponse(error: unknown): Response {
  const ours =
    error instanceof HoldfastError ? error : new HoldfastError("internal", String(error), { cause: error });
  return Response.json(ours.toBody(), { status: ours.status });
}
