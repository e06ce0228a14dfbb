import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Env, Process, SessionProcessRequest } from "@holdfast/protocol";
import { cannotRecord } from "../engine/disk-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import { launch, type Program, stdinBytes } from "../engine/launch.ts";
import type { Run } from "../engine/run.ts";
import { getProcess, keepsAwakeOf } from "../process/process.ts";
import { nearestExisting } from "./cwd.ts";
import bashCode from "./process.bash" with { type: "text" };
import shCode from "./process.sh" with { type: "text" };
import type { Session } from "./session.ts";
import { shWord } from "./sh-shell.ts";

/**
 * Starts a process from a snapshot of the session's state: its directory, variables, functions and all. It is a process
 * like any other from then on: nothing it does comes back, and it outlives the session.
 */
export async function startSessionProcess(
  engine: Engine,
  session: Session,
  request: SessionProcessRequest,
): Promise<Process> {
  const { processId, ...work } = request;
  const { sessionId, shell } = session.facts;
  const { state } = await session.snapshot();
  const cwd = nearestExisting(session.cwd);
  const claim = engine.claim({
    id: processId,
    kind: "process",
    fingerprint: fingerprint({ ...work, sessionId }),
    facts: {
      shell: typeof request.command === "string" ? shell : "none",
      command: request.command,
      cwd,
      sessionId,
      ...keepsAwakeOf(request),
    },
  });
  if (claim.state === "finished") return getProcess(engine, claim.record.id);
  if (claim.state === "new") {
    const stateFile = writeState(engine, claim.run, [state, Buffer.from(environmentLines(request.env))]);
    const stdin: Program["stdin"] =
      request.stdin === undefined ? "open" : { bytes: stdinBytes(request.stdin) };
    const argv = argvOf(session, { stateFile, command: request.command });
    launch(engine, claim.run, {
      argv,
      cwd,
      env: [session.facts.env, request.env],
      stdin,
      timeoutMs: request.timeoutMs,
    });
  }
  return getProcess(engine, claim.run.id);
}

/** Beside the journal, not in the session's directory: the session may be deleted before the process has read it. */
function writeState(engine: Engine, run: Run, parts: readonly Buffer[]): string {
  const dir = join(engine.boot.stateDir, "process-states");
  const file = join(dir, run.id);
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(file, Buffer.concat(parts), { mode: 0o600 });
  } catch (error) {
    engine.abandon(run);
    throw cannotRecord(error);
  }
  void run.finished.then(() => rmSync(file, { force: true }));
  return file;
}

/** The call's environment wins over the session's state. */
function environmentLines(env: Env | undefined): string {
  const lines = Object.entries(env ?? {}).map(([name, value]) =>
    value === null ? `unset -v ${name}\n` : `export ${name}=${shWord(value)}\n`,
  );
  return `\n${lines.join("")}`;
}

function argvOf(session: Session, what: { stateFile: string; command: Command }): string[] {
  const { command, stateFile } = what;
  const rest = [stateFile, ...(typeof command === "string" ? ["text", command] : ["argv", ...command])];
  return session.facts.shell === "bash"
    ? [session.shellPath, "--noprofile", "--norc", "-p", "-c", bashCode, "bash", ...rest]
    : [session.shellPath, "-c", shCode, "sh", ...rest];
}
