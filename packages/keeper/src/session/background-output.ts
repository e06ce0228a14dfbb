import type { Stream } from "../engine/log-writer.ts";
import { boundedOutput } from "../engine/output.ts";

// A screenful or twenty of a chatty server, and no burden for a keeper with many sessions.
const KEPT_BYTES = 128 * 1024;

export interface BackgroundCounts {
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly droppedBytes: number;
}

/** What background jobs write while no command runs: the beginning is kept for the next command, the rest counted. */
export class BackgroundOutput {
  #output = boundedOutput(KEPT_BYTES);

  add(stream: Stream, bytes: Uint8Array): void {
    this.#output[stream].add(bytes);
  }

  /** Hands everything over and begins anew. `undefined` if there was nothing. */
  moveTo(write: (stream: Stream, bytes: Uint8Array) => void): BackgroundCounts | undefined {
    const { stdout, stderr } = this.#output;
    if (stdout.total + stderr.total === 0) return undefined;
    this.#output = boundedOutput(KEPT_BYTES);
    const [stdoutBytes, stderrBytes] = [stdout.bytes.length, stderr.bytes.length];
    if (stdoutBytes > 0) write("stdout", stdout.bytes);
    if (stderrBytes > 0) write("stderr", stderr.bytes);
    return {
      stdoutBytes,
      stderrBytes,
      droppedBytes: stdout.total + stderr.total - stdoutBytes - stderrBytes,
    };
  }
}
