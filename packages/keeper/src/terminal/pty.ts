import { readFileSync } from "node:fs";
import type { TerminalSize } from "@holdfast/protocol";
import { startLeader } from "../engine/children.ts";
import { MARKER } from "../engine/environment.ts";
import { lookAt, type ProcessRef } from "../engine/proc-table.ts";
import { cannotStart, type Exit, exitOf } from "../engine/spawn.ts";
import { PtyDevice } from "./pty-device.ts";
import type { Timers } from "./timers.ts";

// What a program left on its terminal can write for ever: it is listened to for so long after the program's end.
const LAST_OUTPUT_MS = 1000;
// Two looks in a row that find nothing to read: between them the runtime hands over what it may have read already.
const LOOK_EVERY_MS = 2;
// Input that did not fit is offered again after this: the program reads at its own pace, and nothing tells us when.
const RETRY_MS = 2;

const KILLED: Exit = { exitCode: 137, signal: "SIGKILL" };

/** `viewer`: somebody who watches is far behind. `turn`: others flood, too. */
export type HoldReason = "viewer" | "turn";

export interface PtyOptions {
  /** Starts `argv` with the terminal, see `onTerminal` in shells.ts. */
  readonly wrapper: (ttyPath: string) => readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly size: TerminalSize;
  readonly timers: Timers;
  onOutput(bytes: Uint8Array): void;
  /** Everything that was typed has been taken by the program's terminal. */
  onInputTaken(): void;
  /** Once, after the last output. */
  onExit(exit: Exit): void;
}

/**
 * A program on its own pseudo-terminal: leader of its session and of its terminal, so that job control, Ctrl-C and
 * hang-up work. When the leader ends, the terminal is closed for whatever else is still on it.
 */
export class Pty {
  readonly leader: ProcessRef;
  readonly #options: PtyOptions;
  readonly #device: PtyDevice;
  readonly #child: Bun.Subprocess;
  readonly #holds = new Set<HoldReason>();
  #released: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;
  #chunksRead = 0;
  #typed: Uint8Array[] = [];
  #outputEnded = false;
  #finished = false;

  /** Throws if the program cannot be started. */
  constructor(options: PtyOptions) {
    this.#options = options;
    this.#device = new PtyDevice(options.size);
    try {
      this.#child = this.#spawn();
    } catch (error) {
      void this.#device.close();
      throw cannotStart({ argv: options.wrapper(""), cwd: options.cwd }, error);
    }
    this.leader = { pid: this.#child.pid, startTime: lookAt(this.#child.pid)?.startTime ?? 0 };
    void this.#readAll();
  }

  /** How much of what was typed the program's terminal has not taken yet. */
  get pendingInputBytes(): number {
    return this.#typed.reduce((sum, { length }) => sum + length, 0);
  }

  /** Stops reading until the reason is released; the program then waits in its `write`. One chunk may still come. */
  hold(reason: HoldReason): void {
    this.#holds.add(reason);
  }

  release(reason: HoldReason): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.#released?.();
  }

  write(bytes: Uint8Array): void {
    if (this.#finished || bytes.length === 0) return;
    this.#typed.push(bytes);
    if (this.#typed.length === 1) this.#type();
  }

  resize(size: TerminalSize): void {
    this.#device.resize(size);
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

  /** Ends the wait for a program that was killed and whose end does not show. */
  close(): void {
    this.#finish();
  }

  #spawn(): Bun.Subprocess {
    const { wrapper, cwd, env } = this.#options;
    return startLeader(env[MARKER], () =>
      Bun.spawn([...wrapper(this.#device.ttyPath)], {
        cwd,
        env,
        detached: true,
        stdio: ["ignore", "ignore", "ignore"],
        onExit: () => this.#programEnd(),
      }),
    );
  }

  async #readAll(): Promise<void> {
    for (;;) {
      const bytes = await this.#device.read();
      if (bytes === undefined || this.#finished) break;
      this.#chunksRead++;
      this.#options.onOutput(bytes);
      if (this.#holds.size > 0) await this.#whenReleased();
    }
    this.#outputEnded = true;
    if (this.#programEnded) this.#finish();
  }

  /** A program that has ended is read to its end, whoever is behind: there is little left. */
  async #whenReleased(): Promise<void> {
    if (this.#programEnded) return;
    await new Promise<void>((resolve) => {
      this.#released = resolve;
    });
    this.#released = undefined;
  }

  #type(): void {
    while (this.#typed.length > 0) {
      const [first, ...rest] = this.#typed as [Uint8Array, ...Uint8Array[]];
      const taken = this.#device.write(first);
      if (taken < first.length) {
        this.#typed[0] = first.subarray(taken);
        this.#options.timers.after(RETRY_MS, () => this.#type());
        return;
      }
      this.#typed = rest;
    }
    if (!this.#finished) this.#options.onInputTaken();
  }

  get #programEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /**
   * Everything that the program wrote is there when it has ended. The kernel says so by an end of the output only if
   * the program had opened its terminal and nobody else still has it.
   */
  #programEnd(): void {
    this.#released?.();
    if (this.#outputEnded) this.#finish();
    else this.#lookForMore({ looksLeft: LAST_OUTPUT_MS / LOOK_EVERY_MS });
  }

  #lookForMore({ looksLeft, quietSince }: { looksLeft: number; quietSince?: number | undefined }): void {
    const isQuiet = !this.#device.hasOutput;
    if (looksLeft === 0 || (isQuiet && quietSince === this.#chunksRead)) {
      this.#finish();
      return;
    }
    const next = { looksLeft: looksLeft - 1, quietSince: isQuiet ? this.#chunksRead : undefined };
    this.#cancelLook = this.#options.timers.after(LOOK_EVERY_MS, () => this.#lookForMore(next));
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#typed = [];
    this.#cancelLook?.();
    this.#released?.();
    const exit = this.#programEnded ? exitOf(this.#child) : KILLED;
    void this.#device.close().then(() => this.#options.onExit(exit));
  }
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
