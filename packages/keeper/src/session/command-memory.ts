import { closeSync, ftruncateSync, writeSync } from "node:fs";
import { makeMemoryFile, rewind } from "../engine/libc.ts";

// A text that is longer is the exception, and its room is given back.
const KEPT_BYTES = 64 * 1024;

/**
 * Where a shell finds its command: a file in memory that both have open. It has no name by which the work could delete or
 * replace it, and costs neither an open nor a disk.
 */
export class CommandMemory {
  readonly fd = makeMemoryFile();
  #size = 0;
  #closed = false;

  /** Replaces what was there. Parts without a NUL, each ended by one; what is left behind the last is never looked at. */
  put(parts: readonly string[]): void {
    if (this.#closed) return;
    const bytes = Buffer.from(`${parts.join("\0")}\0`);
    if (this.#size > KEPT_BYTES) ftruncateSync(this.fd, 0);
    this.#size = bytes.length;
    for (let at = 0; at < bytes.length; ) at += writeSync(this.fd, bytes, at, bytes.length - at, at);
    rewind(this.fd);
  }

  /** May be called twice. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.fd);
  }
}
