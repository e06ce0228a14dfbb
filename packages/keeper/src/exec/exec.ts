import { DEFAULT_MAX_OUTPUT_BYTES, type ExecRequest } from "@holdfast/protocol";
import { answerFor, type CommandAnswer } from "../engine/command-state.ts";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import { launch, stdinBytes } from "../engine/launch.ts";
import { argvOf } from "../engine/shell.ts";

/**
 * Runs one command to its end, or attaches to the run that already has the id. Whether anybody still listens for the
 * answer makes no difference to the command.
 */
export async function exec(engine: Engine, request: ExecRequest): Promise<CommandAnswer> {
  // How long a caller wants to wait is not part of the work: it may ask again with another patience.
  const { commandId, yieldMs, ...work } = request;
  const { argv, shell } = argvOf(request.command, engine.shell);
  const claim = engine.claim({
    id: commandId,
    kind: "exec",
    fingerprint: fingerprint(work),
    facts: {
      shell,
      maxOutputBytes: request.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
      encoding: request.encoding ?? "utf8",
    },
  });
  if (claim.state === "new") {
    launch(engine, claim.run, {
      argv,
      cwd: request.cwd ?? engine.boot.cwd,
      env: [request.env],
      stdin: request.stdin === undefined ? "empty" : { bytes: stdinBytes(request.stdin) },
      timeoutMs: request.timeoutMs,
    });
  }
  return answerFor(engine, claim, { yieldMs });
}
