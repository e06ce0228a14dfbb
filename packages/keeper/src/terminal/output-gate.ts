import { dlopen } from "bun:ffi";
import { closeSync, constants, openSync, readdirSync, readlinkSync } from "node:fs";

/**
 * Stops and starts a program's output at the terminal itself: `tcflow` on the program's side of the PTY, what Ctrl-S
 * does. The runtime reads a PTY as fast as it can and cannot be told to pause, so without this a `yes` would either
 * fill our memory or run over every viewer. A stopped program sleeps in its `write`; signals and input still reach it.
 */
const { symbols: libc } = dlopen("libc.so.6", { tcflow: { args: ["i32", "i32"], returns: "i32" } });

const TCOOFF = 0;
const TCOON = 1;

/** `viewer`: somebody who watches is behind. `turn`: others flood, too. `user`: Ctrl-S was typed. */
export type HoldReason = "viewer" | "turn" | "user";

export class OutputGate {
  readonly #reasons = new Set<HoldReason>();
  #fd: number | undefined;

  constructor(ttyPath: string) {
    this.#fd = openSync(ttyPath, constants.O_RDWR | constants.O_NOCTTY);
  }

  /** Up to about 128 KiB that the kernel has already taken may still come. */
  hold(reason: HoldReason): void {
    this.#reasons.add(reason);
    if (this.#reasons.size === 1) this.#flow(TCOOFF);
  }

  release(reason: HoldReason): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) this.#flow(TCOON);
  }

  /** Must follow the program's end at once: while this is open the kernel does not report the end of the output. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #flow(action: number): void {
    if (this.#fd !== undefined) libc.tcflow(this.#fd, action);
  }
}

/**
 * Runs `open`, which makes a PTY, and says which one: the runtime does not tell. The program's own `/proc/PID/fd`
 * would be too late for one that ends, or leads its input elsewhere, at once.
 */
export function whichTty<T>(open: () => T): { made: T; ttyPath: string | undefined } {
  const before = ownTtys();
  const made = open();
  for (const path of ownTtys()) if (!before.has(path)) return { made, ttyPath: path };
  return { made, ttyPath: undefined };
}

function ownTtys(): Set<string> {
  const paths = new Set<string>();
  for (const fd of readdirSync("/proc/self/fd")) {
    const target = linkOf(`/proc/self/fd/${fd}`);
    if (target?.startsWith("/dev/pts/")) paths.add(target);
  }
  return paths;
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // The descriptor with which the folder itself was read is gone again.
    return undefined;
  }
}
