import type { ExecResult } from "holdfast";
import { runCollected } from "./collected.ts";
import { type Interruption, unlessInterrupted } from "./interruption.ts";
import type { Start } from "./job.ts";
import { runLive } from "./live.ts";
import { printJson } from "./print.ts";
import type { TakenStdin } from "./stdin.ts";

interface ToRun extends Omit<Start, "stdin" | "signal"> {
  output: "table" | "json";
  /** A promise, because we may look at our stdin while its sandbox is being made. */
  stdin: Promise<TakenStdin>;
  interruption: Interruption;
  /** What else belongs into the JSON. */
  also?: Record<string, unknown>;
}

/** Runs a command as `run` and `exec` do: live, or as one piece of JSON. Ctrl-C ends the command, too. */
export function runCommand(run: ToRun): Promise<number> {
  const { sandbox, session, command, options, interruption } = run;
  return unlessInterrupted(interruption, async () => {
    const { signal } = interruption;
    const start: Start = { sandbox, session, command, options, stdin: await run.stdin, signal };
    return run.output === "json" ? printed(await runCollected(start), run.also) : runLive(start);
  });
}

async function printed(result: ExecResult, also: Record<string, unknown> = {}): Promise<number> {
  await printJson({ ...also, ...result });
  return result.exitCode;
}
