import type { Ending, KillReport, SessionExecRequest } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol";
import { cannotRecord } from "../engine/disk-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { stdinBytes } from "../engine/launch.ts";
import type { Run } from "../engine/run.ts";
import { killCommand } from "./command-tree.ts";
import type { SessionShell, ShellEnd } from "./session-shell.ts";

export interface Job {
  readonly engine: Engine;
  readonly shell: SessionShell;
  readonly shellMarker: string;
  readonly run: Run;
  readonly request: SessionExecRequest;
  readonly timeoutMs: number | undefined;
  readonly cd: string | undefined;
}

/** What became of the shell: it goes on, or it must be rebuilt, and why. */
export type Aftermath = "kept" | "shell_exited" | "shell_unusable" | "timed_out" | "cancelled";

export interface Outcome {
  readonly ending: Ending;
  readonly shellExited: boolean;
  readonly aftermath: Aftermath;
}

/** Runs one command on the shell. Throws if it could not be begun. */
export async function carryOut(job: Job): Promise<Outcome> {
  const { engine, shell, run, request } = job;
  const oomKillsBefore = engine.oom.read();
  const forced = new ForcedEnd(job);
  const timer =
    job.timeoutMs === undefined ? undefined : setTimeout(() => forced.begin("timed_out"), job.timeoutMs);
  run.onCancel(() => forced.begin("cancelled"));
  const stdin = request.stdin === undefined ? undefined : stdinBytes(request.stdin);
  const end = await runOn(shell, { text: request.command, marker: run.id, stdin, cd: job.cd }).finally(() =>
    clearTimeout(timer),
  );
  const kill = await forced.report;
  const aftermath = forced.because ?? aftermathOf(end);
  const oom = () => (engine.oom.read() ?? 0) > (oomKillsBefore ?? 0);
  const ending = endingOf({ end, because: forced.because, oom, kill });
  return { ending, shellExited: end.how !== "ended", aftermath };
}

async function runOn(shell: SessionShell, order: Parameters<SessionShell["run"]>[0]): Promise<ShellEnd> {
  try {
    const end = await shell.run(order);
    if (end.how !== "unread") return end;
  } catch (error) {
    throw cannotRecord(error);
  }
  throw new HoldfastError("unavailable", "the session's shell could not read the command", {
    hint: "the sandbox may be out of file descriptors, or its state directory was changed: try again",
    started: "no",
  });
}

/** The end by timeout or cancel: whichever comes first, once. */
class ForcedEnd {
  because: "timed_out" | "cancelled" | undefined;
  report: Promise<KillReport> | undefined;
  readonly #job: Job;
  readonly #begunAt = performance.now();

  constructor(job: Job) {
    this.#job = job;
  }

  async begin(because: "timed_out" | "cancelled"): Promise<void> {
    const { shell, shellMarker, run } = this.#job;
    if (this.because !== undefined || shell.main === undefined) return;
    this.because = because;
    const ageMs = performance.now() - this.#begunAt;
    const { main, helpers } = shell;
    this.report = killCommand({ main, helpers, marker: run.id, shellMarker, ageMs });
    await this.report;
  }
}

function aftermathOf(end: ShellEnd): Aftermath {
  if (end.how === "ended") return "kept";
  return end.how === "died" ? "shell_exited" : "shell_unusable";
}

function endingOf(facts: {
  end: ShellEnd;
  because: "timed_out" | "cancelled" | undefined;
  /** Asked only of what was killed: most are not, and to look takes time. */
  oom: () => boolean;
  kill: KillReport | undefined;
}): Ending {
  const { end, because, oom, kill } = facts;
  const timedOut = because === "timed_out";
  const exit = exitOf(end);
  return {
    exitCode: timedOut ? 124 : exit.exitCode,
    signal: exit.signal,
    timedOut,
    cancelled: because === "cancelled",
    oomKilled: because === undefined && exit.exitCode === 137 && oom(),
    ...(kill !== undefined && { kill }),
  };
}

/** An unusable shell is killed, so that is how it ends. */
function exitOf(end: ShellEnd): { exitCode: number; signal: string | null } {
  if (end.how === "ended") return { exitCode: end.status, signal: null };
  return end.how === "died"
    ? { exitCode: end.exitCode, signal: end.signal }
    : { exitCode: 137, signal: "SIGKILL" };
}
