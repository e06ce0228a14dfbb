import { closeSync, readSync } from "node:fs";
import { bytesWaiting, makeNonBlocking } from "../engine/libc.ts";

// As much as a pipe holds.
const scratch = Buffer.allocUnsafe(64 * 1024);

/**
 * Reads a pipe as its bytes come. `drain` takes what is there now, at once: whoever learns from another pipe that a
 * writer is done has then all that it wrote, without waiting for an end of file that a background child may hold back.
 */
export class PipeReader {
  readonly #fd: number;
  readonly #take: (bytes: Uint8Array) => void;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #closed = false;

  constructor(fd: number, take: (bytes: Uint8Array) => void) {
    makeNonBlocking(fd);
    this.#fd = fd;
    this.#take = take;
    this.#reader = Bun.file(fd).stream().getReader();
    void this.#run();
  }

  drain(): void {
    // Asked first: to be told by an error that nothing is there takes several times as long.
    while (!this.#closed && bytesWaiting(this.#fd) > 0)
      this.#take(scratch.subarray(0, readSync(this.#fd, scratch)));
  }

  /** Nothing is taken any more. May be called twice. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.cancel().catch(() => {});
    closeSync(this.#fd);
  }

  async #run(): Promise<void> {
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (done || this.#closed) return;
      this.#take(value);
    }
  }
}
