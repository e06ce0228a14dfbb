import { HoldfastError, type Process, type ProcessRequest, type SignalRequest } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import { launch, type Program, stdinBytes } from "../engine/launch.ts";
import { findRun, notFound } from "../engine/lookup.ts";
import { lookAt, signalExactly } from "../engine/proc-table.ts";
import type { RunFacts, RunRecord } from "../engine/record.ts";
import type { Run } from "../engine/run.ts";
import { argvOf } from "../engine/shell.ts";
import { killTree } from "../engine/tree.ts";

/** Starts a program that outlives its request, its client and the server; or finds the one that has the id. */
export function startProcess(engine: Engine, request: ProcessRequest): Process {
  const { processId, ...work } = request;
  const { argv, shell } = argvOf(request.command, engine.shell);
  const cwd = request.cwd ?? engine.boot.cwd;
  const claim = engine.claim({
    id: processId,
    kind: "process",
    fingerprint: fingerprint(work),
    facts: { shell, command: request.command, cwd, ...keepsAwakeOf(request) },
  });
  if (claim.state === "finished") return processOf(claim.record);
  if (claim.state === "new") {
    const stdin: Program["stdin"] =
      request.stdin === undefined ? "open" : { bytes: stdinBytes(request.stdin) };
    launch(engine, claim.run, { argv, cwd, env: [request.env], stdin, timeoutMs: request.timeoutMs });
  }
  return processOf(claim.run.record, claim.run);
}

/** For the facts of a run. */
export function keepsAwakeOf({
  keepsAwake,
}: Pick<ProcessRequest, "keepsAwake">): Pick<RunFacts, "keepsAwake"> {
  return keepsAwake === undefined ? {} : { keepsAwake };
}

export function getProcess(engine: Engine, id: string): Process {
  const { record, run } = find(engine, id);
  return processOf(record, run);
}

/** In the order in which they were started. */
export function listProcesses(engine: Engine, filter: { sessionId?: string | undefined }): Process[] {
  const found: [RunRecord, Run | undefined][] = [];
  for (const record of engine.records.finished()) found.push([record, undefined]);
  for (const run of engine.runs()) found.push([run.record, run]);
  return found
    .filter(([{ kind }]) => kind === "process")
    .filter(([{ facts }]) => filter.sessionId === undefined || facts.sessionId === filter.sessionId)
    .sort(([a], [b]) => a.startedAt - b.startedAt)
    .map(([record, run]) => processOf(record, run));
}

/** Its state once it has ended, or after the time if it has not. Never ends it. */
export async function waitForProcess(
  engine: Engine,
  wait: { id: string; timeoutMs?: number | undefined },
): Promise<Process> {
  const { run } = find(engine, wait.id);
  if (run !== undefined) {
    const late = wait.timeoutMs === undefined ? [] : [Bun.sleep(wait.timeoutMs)];
    await Promise.race([run.finished, ...late]);
  }
  return getProcess(engine, wait.id);
}

/** To the program itself, or to its process group as a terminal's Ctrl-C would. */
export function signalProcess(engine: Engine, id: string, request: SignalRequest): Process {
  const { record, run } = find(engine, id);
  const leader = run?.leader;
  if (run === undefined || leader === undefined) throw hasEnded(id);
  // While the leader lives its number is taken, and so is that of the group that it leads.
  const delivered =
    request.target === "group"
      ? lookAt(leader.pid)?.startTime === leader.startTime && process.kill(-leader.pid, request.signal)
      : signalExactly(leader, request.signal);
  if (!delivered) throw hasEnded(id);
  return processOf(record, run);
}

/** Ends the whole tree. Of one that has ended, what it left running in the background. */
export async function killProcess(engine: Engine, id: string): Promise<Process> {
  const { record, run } = find(engine, id);
  if (run !== undefined) {
    await run.cancel();
    return getProcess(engine, id);
  }
  const answer = processOf(record);
  if (answer.status.state !== "exited") return answer; // lost: its whole instance ended with it
  const kill = await killTree({ marker: id });
  return { ...answer, status: { ...answer.status, kill } };
}

export function stdinOf(engine: Engine, id: string) {
  const { run } = find(engine, id);
  if (run === undefined) throw hasEnded(id);
  if (run.stdin !== undefined) return run.stdin;
  throw new HoldfastError(
    "wrong_state",
    `cannot write: the stdin of ${id} was given at its start and is closed`,
    {
      hint: "start the process without stdin to write to it later",
    },
  );
}

function find(engine: Engine, id: string): { record: RunRecord; run?: Run | undefined } {
  const found = findRun(engine, id);
  if (found.record.kind !== "process") throw notFound("process", id);
  return found;
}

function processOf(record: RunRecord, run?: Run): Process {
  const { id, facts, end } = record;
  return {
    processId: id,
    pid: record.pid ?? 0,
    command: facts.command ?? [],
    cwd: facts.cwd ?? "/",
    shell: facts.shell,
    status: end?.result ?? { state: "running" },
    startedAt: new Date(record.startedAt).toISOString(),
    ...(end !== undefined && { endedAt: new Date(end.at).toISOString() }),
    log: run?.log.range ?? end?.log ?? { firstOffset: 0, nextOffset: 0 },
    ...(facts.sessionId !== undefined && { sessionId: facts.sessionId }),
    ...keepsAwakeOf(facts),
  };
}

function hasEnded(id: string): HoldfastError {
  return new HoldfastError("wrong_state", `the process ${id} has ended`, {
    hint: "look at its status and logs",
  });
}
