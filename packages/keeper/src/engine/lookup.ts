import { HoldfastError, type LogEvent } from "@holdfast/protocol";
import type { LogToRead } from "../http/log-response.ts";
import { sourceOf } from "./command-state.ts";
import type { Engine } from "./engine.ts";
import type { FinishedRecord, RunRecord } from "./record.ts";
import type { Run } from "./run.ts";
import { Wake } from "./wake.ts";

type FoundRun =
  | { readonly run: Run; readonly record: RunRecord }
  | { readonly run?: undefined; readonly record: FinishedRecord };

/** A run by its id, running or over. Throws `not_found`, or `record_expired` past its retention. */
export function findRun(engine: Engine, id: string): FoundRun {
  const run = engine.running(id);
  if (run !== undefined) return { run, record: run.record };
  const record = engine.records.find(id);
  if (record?.end === undefined) throw notFound("command or process", id);
  return { record: { ...record, end: record.end } };
}

export function logToRead(engine: Engine, wanted: { id: string; what: "command" | "process" }): LogToRead {
  const found = findRun(engine, wanted.id);
  if ((found.record.kind === "process") !== (wanted.what === "process"))
    throw notFound(wanted.what, wanted.id);
  if (found.run === undefined) return finishedLog(engine, found.record);
  return runningLog(engine, found.run);
}

export function notFound(what: string, id: string): HoldfastError {
  return new HoldfastError("not_found", `there is no ${what} ${id}`, {
    hint: "check the id; a lost answer can be asked for again with the id that was sent",
  });
}

function finishedLog(engine: Engine, record: FinishedRecord): LogToRead {
  return { ...sourceOf(engine, record), changed: new Wake(), end: () => endEvent(record) };
}

/** Follows the run over its end: the reader may still be far behind then. */
function runningLog(engine: Engine, run: Run): LogToRead {
  let ended: LogEvent | undefined;
  void run.finished.then(({ record }) => {
    ended = endEvent(record);
    run.log.changed.ring();
  });
  return {
    id: run.id,
    dir: engine.records.logDir,
    changed: run.log.changed,
    followers: run.log.followers,
    get starts() {
      return run.log.starts;
    },
    get short() {
      return run.log.short;
    },
    get range() {
      return run.log.range;
    },
    end: () => ended,
  };
}

function endEvent({ end }: FinishedRecord): LogEvent {
  const offset = end.log.nextOffset;
  if (end.result.state === "lost") return { type: "lost", offset, reason: end.result.reason };
  const { state: _, ...ending } = end.result;
  return { type: "exit", offset, ...ending };
}
