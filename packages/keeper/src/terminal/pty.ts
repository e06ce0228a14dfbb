import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { HoldfastError, type TerminalSize } from "@holdfast/protocol";
import { registerOwnChild } from "../engine/children.ts";
import { lookAt, type ProcessRef } from "../engine/proc-table.ts";
import { type HoldReason, OutputGate, whichTty } from "./output-gate.ts";
import type { Timers } from "./timers.ts";

// The kernel reports the output's end at once when the program is gone; this is for a kernel that does not.
const LAST_OUTPUT_MS = 1000;

// Of <termios.h>, equal on every Linux.
const IXON = 0o2000;
const CTRL_Q = 0x11;
const CTRL_S = 0x13;

export interface PtyOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly size: TerminalSize;
  readonly timers: Timers;
  onOutput(bytes: Uint8Array): void;
  /** Everything that was typed has been taken by the program's terminal. */
  onInputTaken(): void;
  /** Once, after the last output. */
  onExit(ending: { exitCode: number; signal: string | null }): void;
}

/**
 * A program on its own pseudo-terminal: leader of its session and of its terminal, so that job control, Ctrl-C and
 * hang-up work. When the leader ends, the kernel hangs the terminal up for whatever else is still on it.
 */
export class Pty {
  readonly leader: ProcessRef;
  readonly #options: PtyOptions;
  readonly #child: Bun.Subprocess;
  readonly #terminal: Bun.Terminal;
  readonly #gate: OutputGate | undefined;
  #pendingInput = 0;
  #outputEnded = false;
  #finished = false;

  constructor(options: PtyOptions) {
    this.#options = options;
    const { made, ttyPath } = whichTty(() => this.#spawn());
    this.#child = made;
    this.leader = { pid: made.pid, startTime: lookAt(made.pid)?.startTime ?? 0 };
    if (made.terminal === undefined || ttyPath === undefined) {
      this.#finished = true;
      made.kill("SIGKILL");
      throw new HoldfastError("internal", "the sandbox gave no pseudo-terminal", {
        started: "yes",
        hint: "check that /dev/pts and /proc are mounted inside the sandbox",
      });
    }
    this.#terminal = made.terminal;
    this.#gate = new OutputGate(ttyPath);
  }

  /** How much of what was typed the program's terminal has not taken yet. */
  get pendingInputBytes(): number {
    return this.#pendingInput;
  }

  hold(reason: HoldReason): void {
    this.#gate?.hold(reason);
  }

  release(reason: HoldReason): void {
    this.#gate?.release(reason);
  }

  /**
   * Types. Ctrl-S and Ctrl-Q are carried out here while the terminal honours them: left to the kernel, our next
   * release of the output would undo a Ctrl-S.
   */
  write(bytes: Uint8Array): void {
    if (this.#finished) return;
    let from = 0;
    const honoured = (this.#terminal.inputFlags & IXON) !== 0;
    for (const [at, byte] of bytes.entries()) {
      if (!honoured || (byte !== CTRL_S && byte !== CTRL_Q)) continue;
      this.#type(bytes.subarray(from, at));
      from = at + 1;
      if (byte === CTRL_S) this.hold("user");
      else this.release("user");
    }
    this.#type(bytes.subarray(from));
  }

  resize({ cols, rows }: TerminalSize): void {
    if (!this.#finished) this.#terminal.resize(cols, rows);
  }

  /** A window change that changes nothing: full-screen programs answer it by drawing everything anew. */
  askForRedraw(): void {
    const group = foregroundGroup(this.leader.pid);
    if (this.#finished || group === undefined) return;
    try {
      process.kill(-group, "SIGWINCH");
    } catch {
      // It ended in between; then there is nothing to draw.
    }
  }

  /** Ends the wait for a program whose end does not show. */
  close(): void {
    this.#gate?.close();
    this.#finish();
  }

  #type(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pendingInput += bytes.length;
    this.#terminal.write(bytes);
  }

  #spawn(): Bun.Subprocess {
    const { argv, cwd, env, size, onOutput } = this.#options;
    const child = Bun.spawn([...argv], {
      cwd,
      env,
      terminal: {
        ...size,
        data: (_, bytes) => onOutput(bytes),
        drain: () => this.#inputTaken(),
        exit: () => this.#outputEnd(),
      },
      onExit: () => this.#programEnd(),
    });
    registerOwnChild(child);
    return child;
  }

  #inputTaken(): void {
    this.#pendingInput = 0;
    if (!this.#finished) this.#options.onInputTaken();
  }

  #programEnd(): void {
    this.#gate?.close();
    if (this.#outputEnded) this.#finish();
    else this.#options.timers.after(LAST_OUTPUT_MS, () => this.#finish());
  }

  #outputEnd(): void {
    this.#outputEnded = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) this.#finish();
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#terminal.close();
    this.#options.onExit(endingOf(this.#child));
  }
}

function endingOf({ exitCode, signalCode }: Bun.Subprocess): { exitCode: number; signal: string | null } {
  if (signalCode === null) return { exitCode: exitCode ?? 0, signal: null };
  // A real-time signal has a number and no name.
  if (typeof signalCode === "number") return { exitCode: 128 + signalCode, signal: `SIG${signalCode}` };
  return { exitCode: 128 + constants.signals[signalCode], signal: signalCode };
}

/** Who has the terminal's foreground, from the session leader's entry: field 8 of /proc/PID/stat. */
function foregroundGroup(leader: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${leader}/stat`, "latin1");
    const group = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[5]);
    return group > 1 ? group : undefined;
  } catch {
    return undefined;
  }
}
