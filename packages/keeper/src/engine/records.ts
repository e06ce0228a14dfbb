import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol/errors";
import { cannotRecord } from "./disk-errors.ts";
import { isOwnId, shortHash } from "./ids.ts";
import { Journal, type JournalLine } from "./journal.ts";
import { listLogs, removeLog, type StoredLog } from "./log-files.ts";
import { endOfLog } from "./log-reader.ts";
import { SEGMENTS, SHORT_LOG_BYTES } from "./log-writer.ts";
import type { FinishedRecord, RunEnd, RunRecord } from "./record.ts";

// Retention of finished runs: whatever bound is reached first. Commands are many and short, processes few and long:
// each has its own count, so that a burst of execs does not push out the log of yesterday's build.
export const KEPT_COMMANDS = 2_000;
export const KEPT_PROCESSES = 200;
export const KEPT_MS = 24 * 60 * 60 * 1000;
const KEPT_LOG_BYTES = 1024 * 1024 * 1024;
// Expired ids that callers chose are refused this long; a caller that retries does so within its last few thousand.
const REMEMBERED_IDS = 65_536;
// The journal is rewritten when it has grown by this much beyond what it had to hold.
const JOURNAL_SLACK_BYTES = 4 * 1024 * 1024;

/**
 * Every run that has a record: running, or finished and still kept. The truth is the journal; this is its reading,
 * with retention. A run that was running when the keeper died is `lost` from the next start on.
 */
export class Records {
  readonly #journal: Journal;
  readonly #logDir: string;
  readonly #now: () => number;
  readonly #running = new Map<string, RunRecord>();
  /** In the order in which they ended. */
  readonly #finished = new Map<string, FinishedRecord>();
  readonly #kept = { commands: 0, processes: 0, logBytes: 0 };
  readonly #expired = new Set<number>();
  /** While the journal is read: frames of runs whose end has not been read. */
  readonly #short = new Map<string, Buffer>();
  #tidying: NodeJS.Immediate | undefined;
  #rewrittenBytes = 0;

  constructor(options: { stateDir: string; now: () => number }) {
    this.#now = options.now;
    this.#logDir = join(options.stateDir, "logs");
    this.#journal = new Journal(join(options.stateDir, "journal"));
    this.#load();
  }

  get logDir(): string {
    return this.#logDir;
  }

  /** A record that is kept, running or finished; `undefined` for an id that was never used. Throws `record_expired`. */
  find(id: string): RunRecord | undefined {
    this.#expireOld();
    const record = this.#running.get(id) ?? this.#finished.get(id);
    if (record === undefined && this.#wasExpired(id)) throw expired(id);
    return record;
  }

  /** The same without refusal: `undefined` also for one that is expired. */
  peek(id: string): RunRecord | undefined {
    return this.#running.get(id) ?? this.#finished.get(id);
  }

  finished(): IterableIterator<FinishedRecord> {
    this.#expireOld();
    return this.#finished.values();
  }

  /** Written before anything is started; a failure to write means that nothing may be started. */
  begin(record: RunRecord): void {
    try {
      this.#journal.append({ line: "begin", record });
    } catch (error) {
      throw cannotRecord(error);
    }
    this.#running.set(record.id, record);
  }

  /** The program could not be started after all: as if it had never been asked for. */
  void(id: string): void {
    this.#running.delete(id);
    this.#journal.appendWhenPossible({ line: "void", id });
  }

  started(id: string, pid: number): void {
    const record = this.#running.get(id);
    if (record === undefined) return;
    record.pid = pid;
    if (record.kind === "process") this.#journal.appendWhenPossible({ line: "started", id, pid });
  }

  /** A frame of a short log, as it comes; false if there is no room for it. */
  output(id: string, frame: Uint8Array): boolean {
    return this.#journal.appendIfRoom({ line: "output", id, frame: Buffer.from(frame).toString("base64") });
  }

  end(id: string, end: RunEnd): void {
    const record = this.#running.get(id);
    if (record === undefined) return;
    this.#running.delete(id);
    this.#keep({ ...record, end });
    this.#journal.appendWhenPossible({ line: "end", id, end });
    this.#tidying ??= setImmediate(() => this.#tidy()); // whoever waits for the end has it first
  }

  close(): void {
    clearImmediate(this.#tidying);
    this.#journal.close();
  }

  #tidy(): void {
    this.#tidying = undefined;
    this.#expireOld();
    if (this.#journal.bytes > this.#rewrittenBytes + JOURNAL_SLACK_BYTES) this.#rewriteIfPossible();
  }

  #load(): void {
    const logs = listLogs(this.#logDir);
    for (const line of this.#journal.read()) this.#apply(line);
    for (const record of this.#running.values()) {
      const { id } = record;
      const left = { dir: this.#logDir, id, log: logs.get(id), short: this.#short.get(id) };
      this.#keep({ ...record, end: lostEnd({ at: this.#now(), ...left }) });
    }
    this.#running.clear();
    this.#short.clear();
    this.#expireOld();
    for (const [id, { starts }] of logs) if (!this.#finished.has(id)) removeLog(this.#logDir, { id, starts });
    this.#rewriteIfPossible();
  }

  #apply(entry: JournalLine): void {
    switch (entry.line) {
      case "begin":
        if (entry.record.end === undefined) this.#running.set(entry.record.id, entry.record);
        else this.#keep({ ...entry.record, end: entry.record.end });
        return;
      case "output":
        this.#readShort(entry);
        return;
      case "started":
      case "end": {
        const record = this.#running.get(entry.id);
        if (record === undefined) return;
        if (entry.line === "started") record.pid = entry.pid;
        else if (this.#running.delete(entry.id)) this.#keep({ ...record, end: entry.end });
        if (entry.line === "end") this.#short.delete(entry.id);
        return;
      }
      case "void":
        this.#running.delete(entry.id);
        return;
      case "expired":
        this.#forget(entry.id);
        return;
      case "remember":
        for (const hash of entry.hashes) this.#rememberExpired(hash);
        return;
      default:
        entry satisfies never;
    }
  }

  #readShort({ id, frame }: Extract<JournalLine, { line: "output" }>): void {
    const before = this.#short.get(id) ?? Buffer.alloc(0);
    const after = Buffer.concat([before, Buffer.from(frame, "base64")]);
    // What is more, or of a run that is not known, was not written by us.
    if (this.#running.has(id) && after.length <= SHORT_LOG_BYTES) this.#short.set(id, after);
  }

  #keep(record: FinishedRecord): void {
    this.#finished.set(record.id, record);
    this.#kept[countOf(record)] += 1;
    this.#kept.logBytes += record.end.logBytesOnDisk;
  }

  #expireOld(): void {
    const oldest = this.#now() - KEPT_MS;
    for (const record of this.#finished.values()) {
      const tooMany = this.#kept.commands > KEPT_COMMANDS || this.#kept.processes > KEPT_PROCESSES;
      const full = this.#kept.logBytes > KEPT_LOG_BYTES;
      if (record.end.at >= oldest && !tooMany && !full) return;
      const mayGo =
        record.end.at < oldest || full || this.#kept[countOf(record)] > keptAtMost[countOf(record)];
      if (mayGo) this.#expire(record);
    }
  }

  #expire(record: FinishedRecord): void {
    this.#forget(record.id);
    removeLog(this.#logDir, { id: record.id, starts: record.end.segments });
    this.#journal.appendWhenPossible({ line: "expired", id: record.id });
  }

  #forget(id: string): void {
    const record = this.#finished.get(id);
    if (record === undefined) return;
    this.#finished.delete(id);
    this.#kept[countOf(record)] -= 1;
    this.#kept.logBytes -= record.end.logBytesOnDisk;
    if (!isOwnId(id)) this.#rememberExpired(shortHash(id));
  }

  #rememberExpired(hash: number): void {
    this.#expired.add(hash);
    if (this.#expired.size <= REMEMBERED_IDS) return;
    for (const oldest of this.#expired) {
      this.#expired.delete(oldest);
      return;
    }
  }

  #wasExpired(id: string): boolean {
    return isOwnId(id) || this.#expired.has(shortHash(id));
  }

  #rewriteIfPossible(): void {
    try {
      this.#rewrite();
    } catch {
      // A full disk: the old file is still there and still true, only longer than it need be.
      this.#rewrittenBytes = this.#journal.bytes;
    }
  }

  #rewrite(): void {
    const hashes = [...this.#expired];
    const records = [...this.#finished.values(), ...this.#running.values()];
    this.#journal.rewrite([
      { line: "remember", hashes },
      ...records.map((record): JournalLine => ({ line: "begin", record })),
    ]);
    this.#rewrittenBytes = this.#journal.bytes;
  }
}

const keptAtMost = { commands: KEPT_COMMANDS, processes: KEPT_PROCESSES } as const;

function countOf(record: RunRecord): "commands" | "processes" {
  return record.kind === "process" ? "processes" : "commands";
}

/** What is found of the log of a run that was running when the keeper died. */
interface Left {
  readonly dir: string;
  readonly id: string;
  readonly log: StoredLog | undefined;
  readonly short: Buffer | undefined;
}

function lostEnd({ at, ...left }: Left & { at: number }): RunEnd {
  return {
    at,
    result: { state: "lost", reason: "keeper_lost" },
    written: { stdoutBytes: 0, stderrBytes: 0 },
    ...logOf(left),
  };
}

function logOf({ dir, id, log, short }: Left): Pick<RunEnd, "log" | "segments" | "logBytesOnDisk" | "short"> {
  const starts = log?.starts ?? [];
  const inFiles = endOfLog({ dir, id, starts });
  const inJournal = short === undefined ? 0 : endOfLog({ dir, id, starts: [], short });
  // A file that has less than the journal was just being made.
  if (short !== undefined && inJournal > inFiles) {
    removeLog(dir, { id, starts });
    const range = { firstOffset: 0, nextOffset: inJournal };
    return { log: range, segments: [], logBytesOnDisk: short.length, short: short.toString("base64") };
  }
  return {
    log: { firstOffset: starts[0] ?? 0, nextOffset: inFiles },
    segments: starts.slice(-SEGMENTS),
    logBytesOnDisk: log?.bytes ?? 0,
  };
}

function expired(id: string): HoldfastError {
  return new HoldfastError("record_expired", `the record of ${id} is no longer kept`, {
    hint: "it ran before and is not run again; use a new id to run it once more",
    started: "unknown",
  });
}
