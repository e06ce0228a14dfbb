import { writeFileSync } from "node:fs";
import type { Ending } from "@holdfast/protocol";
import { headPath } from "./log-files.ts";
import { LogWriter, type Stream } from "./log-writer.ts";
import { boundedOutput, headFrames, type Output } from "./output.ts";
import type { ProcessRef } from "./proc-table.ts";
import type { FinishedRecord, RunEnd, RunRecord } from "./record.ts";
import type { StdinWriter } from "./stdin.ts";

export interface RunOptions {
  readonly record: RunRecord;
  readonly logDir: string;
  /** Writes a frame of a short log into the journal; false if it cannot. */
  keepShort(frame: Uint8Array): boolean;
  onOutput(): void;
  onEnd(end: RunEnd): FinishedRecord;
}

/**
 * One command, process or session command while it runs. Whoever carries it out calls `write` with the bytes as they
 * come, and `finish` exactly once. Everybody else waits for `finished`, follows `log`, or calls `cancel`.
 */
export class Run {
  readonly record: RunRecord;
  readonly log: LogWriter;
  /** The first bytes of each stream, for the result; a process has none, its output is read from its log. */
  readonly output: Output;
  readonly finished: Promise<FinishedRun>;
  /** Added to the answers about the run while it runs; set by the surface that owns it, such as a waiting command. */
  notes: Record<string, unknown> = {};
  /** The program's own process, once it is started. */
  leader: ProcessRef | undefined;
  /** Where its stdin can be written to, if it was left open. */
  stdin: StdinWriter | undefined;
  #settle: (finished: FinishedRun) => void = () => {};
  #cancel: (() => void) | undefined;
  #cancelRequested = false;
  readonly #options: RunOptions;

  constructor(options: RunOptions) {
    this.record = options.record;
    this.#options = options;
    const journal = (frame: Uint8Array) => options.keepShort(frame);
    this.log = new LogWriter({ dir: options.logDir, id: options.record.id, journal });
    this.output = boundedOutput(options.record.facts.maxOutputBytes ?? 0);
    this.finished = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get id(): string {
    return this.record.id;
  }

  write(stream: Stream, ...pieces: Uint8Array[]): void {
    for (const bytes of pieces) this.output[stream].add(bytes);
    this.log.write(stream, ...pieces);
    this.#options.onOutput();
  }

  /** Says how this run is brought to its end. One that was cancelled before it could be is cancelled now. */
  onCancel(cancel: () => void): void {
    this.#cancel = cancel;
    if (this.#cancelRequested) void this.cancel();
  }

  /** Ends the run and waits until it has ended. May be called twice, and after the end. */
  async cancel(): Promise<void> {
    this.#cancelRequested = true;
    const cancel = this.#cancel;
    this.#cancel = undefined;
    cancel?.();
    await this.finished;
  }

  /** Seals the log and writes the end into the journal. */
  finish(ending: Ending, options: { at: number; extra?: Record<string, unknown> }): void {
    this.log.close();
    const { range, starts, short = NOTHING } = this.log;
    if (range.firstOffset > 0 && this.output.stdout.total + this.output.stderr.total > 0) this.#keepHead();
    const end: RunEnd = {
      at: options.at,
      result: { state: "exited", ...ending },
      written: { stdoutBytes: this.output.stdout.total, stderrBytes: this.output.stderr.total },
      log: range,
      segments: [...starts],
      logBytesOnDisk: this.log.bytesOnDisk,
      ...(short.length > 0 && { short: Buffer.from(short).toString("base64") }),
      ...(options.extra !== undefined && { extra: options.extra }),
    };
    this.#settle({ record: this.#options.onEnd(end), output: this.output });
  }

  #keepHead(): void {
    const head = headFrames(this.output);
    if (head.length === 0) return;
    try {
      writeFileSync(headPath(this.log.dir, this.id), head, { mode: 0o600, flag: "wx" });
    } catch {
      // The first answer has the output; a later one says how many bytes are missing.
    }
  }
}

const NOTHING = new Uint8Array(0);

export interface FinishedRun {
  readonly record: FinishedRecord;
  readonly output: Output;
}
