import { closeSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";

/**
 * The writing end of a program's stdin. Writers take turns, so each `write` arrives whole; each waits until the
 * program has taken its bytes, so a program that does not read costs no memory.
 */
export class StdinWriter {
  readonly #fd: number;
  readonly #sink: Bun.FileSink;
  #turn: Promise<unknown> = Promise.resolve();
  #state: "open" | "closing" | "closed" = "open";

  constructor(fd: number) {
    this.#fd = fd;
    this.#sink = Bun.file(fd).writer({ highWaterMark: 64 * 1024 });
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state !== "open") throw notOpen();
      try {
        await this.#sink.write(bytes);
        await this.#sink.flush();
      } catch (error) {
        this.#release();
        throw notOpen(error);
      }
    });
  }

  /** After all that was written. May be called twice. */
  close(): Promise<void> {
    return this.#inTurn(async () => this.#release());
  }

  /** The program is gone: whoever still waits to write is told so. */
  abort(): void {
    if (this.#state === "closed") return;
    this.#release();
  }

  #release(): void {
    if (this.#state !== "open") return;
    this.#state = "closed";
    try {
      const ended = this.#sink.end();
      if (ended instanceof Promise) ended.catch(() => {});
    } catch {
      // What could not be written any more has no reader.
    }
    closeSync(this.#fd);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

function notOpen(cause?: unknown): HoldfastError {
  return new HoldfastError("wrong_state", "cannot write: the program's stdin is closed", {
    hint: "the program ended or closed its stdin; look at its status and logs",
    cause,
  });
}
