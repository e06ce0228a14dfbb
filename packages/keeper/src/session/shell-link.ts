import { closeSync, readlinkSync, readSync, writeSync } from "node:fs";
import { bytesWaiting, makeNarrowPipe, makePipe } from "../engine/libc.ts";
import type { Stream } from "../engine/log-writer.ts";
import { PipeReader } from "./pipe-reader.ts";
import { type Report, Reports } from "./reports.ts";

export interface LinkEars {
  readonly output: (stream: Stream, bytes: Uint8Array) => void;
  readonly report: (report: Report) => void;
}

/**
 * The pipes between a driver and its shell. Both ends stay open here as long as the session lives: a shell that is
 * started anew gets the same ones but for the feed, and the output of background jobs goes on arriving.
 */
export class ShellLink {
  #feed = makePipe();
  readonly #stdout = makePipe();
  readonly #stderr = makePipe();
  /** Holds one report: a shell that has told an end and goes on waits until it was heard. */
  readonly #reportPipe = makeNarrowPipe();
  readonly #orders = makePipe();
  readonly #dumps = makePipe();
  readonly reports: Reports;
  readonly #readers: Readonly<Record<Stream | "reports" | "dumps", PipeReader>>;
  #dumped: Buffer[] = [];
  #closed = false;

  constructor(ears: LinkEars) {
    this.reports = new Reports(ears.report);
    this.#readers = {
      stdout: new PipeReader(this.#stdout.readFd, (bytes) => ears.output("stdout", bytes)),
      stderr: new PipeReader(this.#stderr.readFd, (bytes) => ears.output("stderr", bytes)),
      dumps: new PipeReader(this.#dumps.readFd, (bytes) => void this.#dumped.push(Buffer.from(bytes))),
      reports: new PipeReader(this.#reportPipe.readFd, (bytes) => this.reports.push(bytes)),
    };
  }

  /** For the shell, in the order of its descriptors 0 to 5. */
  get descriptors(): [number, number, number, number, number, number] {
    const [input, orders] = [this.#feed.readFd, this.#orders.readFd];
    const [stdout, stderr] = [this.#stdout.writeFd, this.#stderr.writeFd];
    return [input, stdout, stderr, this.#reportPipe.writeFd, orders, this.#dumps.writeFd];
  }

  /** What /proc shows for a descriptor that is the feed. */
  get feedName(): string {
    return readlinkSync(`/proc/self/fd/${this.#feed.readFd}`);
  }

  /** Bytes of the feed that the shell has not read. */
  get unread(): number {
    return bytesWaiting(this.#feed.readFd);
  }

  feed(...lines: string[]): void {
    this.feedExactly(`${lines.join("\n")}\n`);
  }

  feedExactly(text: string): void {
    if (!this.#closed) writeSync(this.#feed.writeFd, text);
  }

  /** To whichever savepoint reads next. */
  order(line: string): void {
    if (!this.#closed) writeSync(this.#orders.writeFd, `${line}\n`);
  }

  /** For a shell that is started anew: jobs of the one before may still read of its feed. */
  renewFeed(): void {
    if (this.#closed) return;
    const { readFd, writeFd } = this.#feed;
    this.#feed = makePipe();
    closeSync(readFd);
    closeSync(writeFd);
  }

  /** Takes back lines that nobody has read: they were meant for a shell that is dead. */
  discardFeed(): void {
    if (!this.#closed) discard(this.#feed.readFd);
  }

  /** Takes back orders that nobody has read: they were meant for a savepoint that is dead. */
  discardOrders(): void {
    if (!this.#closed) discard(this.#orders.readFd);
  }

  /** Everything that was written to stdout and stderr before now has been heard when this returns. */
  drainOutput(): void {
    this.#readers.stdout.drain();
    this.#readers.stderr.drain();
  }

  /** What was dumped since the last call. */
  takeDump(): Buffer {
    this.#readers.dumps.drain();
    const dump = Buffer.concat(this.#dumped);
    this.#dumped = [];
    return dump;
  }

  /** May be called twice. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const fd of [...this.descriptors, this.#feed.writeFd, this.#orders.writeFd]) closeSync(fd);
    for (const reader of Object.values(this.#readers)) reader.close();
  }
}

function discard(fd: number): void {
  const count = bytesWaiting(fd);
  if (count > 0) readSync(fd, Buffer.allocUnsafe(count));
}
