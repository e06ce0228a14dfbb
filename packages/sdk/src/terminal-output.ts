import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";

/** What a terminal shows, in order. */
export type TerminalEvent =
  | { type: "output"; offset: number; bytes: Uint8Array }
  /**
   * Bytes from `from` up to, not including, `to` are no longer there. Give `restore` to the screen before what
   * follows: it sets the modes that were set in the lost part.
   */
  | { type: "truncated"; from: number; to: number; restore: string };

// Of output that nobody reads, this much of the newest is kept for one who begins to.
const UNREAD_BYTES = 256 * 1024;
// How soon a reader that was away for long is noticed to be back.
const WANTED_MS = 100;

/**
 * Output between a connection and the one who reads it. While somebody reads, each event is acknowledged when the
 * reader comes for the next one, so that a slow reader slows the program. While nobody does, everything is taken at
 * once and the oldest is dropped, so that a program whose output is not wanted does not stand still.
 */
export class TerminalOutput {
  readonly #onTaken: (offset: number) => void;
  #events: TerminalEvent[] = [];
  #bytes = 0;
  #reading = false;
  #ended: { error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(onTaken: (offset: number) => void) {
    this.#onTaken = onTaken;
  }

  push(event: TerminalEvent): void {
    this.#events.push(event);
    this.#bytes += sizeOf(event);
    if (!this.#reading) this.#makeRoom();
    if (!this.#reading) this.#onTaken(offsetAfter(event));
    this.#wake?.();
  }

  /** No more will come; with an error, the reader gets that after what there is. */
  end(outcome: { error?: unknown } = {}): void {
    this.#ended ??= outcome;
    this.#wake?.();
  }

  /** Resolves unless somebody reads and has not yet come for what there is. */
  async wanted(signal: AbortSignal): Promise<void> {
    while (this.#reading && this.#bytes > UNREAD_BYTES / 2) await sleep(WANTED_MS, signal);
  }

  async *read(): AsyncGenerator<TerminalEvent> {
    if (this.#reading) throw alreadyRead();
    this.#reading = true;
    try {
      for (;;) {
        const event = this.#events.shift() ?? (await this.#next());
        if (event === undefined) return;
        this.#bytes -= sizeOf(event);
        yield event;
        this.#onTaken(offsetAfter(event));
      }
    } finally {
      this.#reading = false;
    }
  }

  async #next(): Promise<TerminalEvent | undefined> {
    while (this.#events.length === 0 && this.#ended === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const event = this.#events.shift();
    if (event === undefined && this.#ended?.error !== undefined) throw this.#ended.error;
    return event;
  }

  #makeRoom(): void {
    while (this.#bytes > UNREAD_BYTES && this.#events.length > 1) {
      const [first, second, ...rest] = this.#events as [TerminalEvent, TerminalEvent, ...TerminalEvent[]];
      this.#bytes -= sizeOf(first);
      const lost = asTruncated(first);
      if (second.type === "truncated") this.#events = [{ ...second, from: lost.from }, ...rest];
      else if (first.type === "output") this.#events = [lost, second, ...rest];
      else {
        this.#bytes -= sizeOf(second);
        this.#events = [{ ...lost, to: offsetAfter(second) }, ...rest];
      }
    }
  }
}

function alreadyRead(): HoldfastError {
  return new HoldfastError("wrong_state", "this terminal's output is already being read", {
    hint: "Attach once more for a second reader: each has its own place in the output.",
  });
}

function sizeOf(event: TerminalEvent): number {
  return event.type === "output" ? event.bytes.length : 0;
}

function offsetAfter(event: TerminalEvent): number {
  return event.type === "output" ? event.offset + event.bytes.length : event.to;
}

function asTruncated(event: TerminalEvent): TerminalEvent & { type: "truncated" } {
  if (event.type === "truncated") return event;
  return { type: "truncated", from: event.offset, to: offsetAfter(event), restore: "" };
}
