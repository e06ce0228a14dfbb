import {
  type Command,
  HoldfastError,
  type TerminalConnectQuery,
  type TerminalExit,
  type Terminal as TerminalFacts,
  type TerminalSize,
} from "@holdfast/protocol";
import { ScreenModes } from "@holdfast/protocol/screen-modes";
import type { ProcessRef } from "../engine/proc-table.ts";
import type { Exit } from "../engine/spawn.ts";
import type { UseClock } from "../engine/use-clock.ts";
import { Grace } from "./grace.ts";
import { Pty, type PtyOptions } from "./pty.ts";
import { Ring } from "./ring.ts";
import type { Timers } from "./timers.ts";
import type { Seat, Turns } from "./turns.ts";
import { Viewer, type ViewerSocket } from "./viewer.ts";
import { Viewers } from "./viewers.ts";

/** What a viewer that comes back, or comes late, can still be shown. */
const REPLAY_BYTES = 1024 * 1024;
// A viewer this far behind makes the program wait. Half the ring: what the kernel still delivers does not overtake it.
const FAR_BEHIND_BYTES = REPLAY_BYTES / 2;
const NEAR_BYTES = REPLAY_BYTES / 8;
// Input that the program does not read: past the first bound viewers are asked to wait, past the second one is cut.
const INPUT_FULL_BYTES = 64 * 1024;
const INPUT_LIMIT_BYTES = 4 * 1024 * 1024;

export interface TerminalOptions {
  readonly terminalId: string;
  readonly ptyId: string;
  readonly command: Command;
  readonly wrapper: PtyOptions["wrapper"];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly size: TerminalSize;
  readonly graceSeconds: number | null;
  readonly timers: Timers;
  readonly turns: Turns;
  readonly use: UseClock;
  /** Nobody who may write has been attached for the whole grace. */
  onGraceOver(): void;
  onExit(): void;
}

/** A PTY, the last of its output, and those who watch it. Lives on with nobody attached. */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #pty: Pty;
  readonly #ring = new Ring(REPLAY_BYTES);
  readonly #modes = new ScreenModes();
  readonly #viewers: Viewers;
  readonly #grace: Grace;
  readonly #seat: Seat;
  readonly #startedAt: string;
  readonly #ended = Promise.withResolvers<TerminalExit>();
  #size: TerminalSize;
  #exit: TerminalExit | undefined;
  #endCause: TerminalExit["cause"] = "program";
  #inputFull = false;
  readonly #wroteOutput: string;

  /** Throws if the program cannot be started. */
  constructor(options: TerminalOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#wroteOutput = `terminal ${options.terminalId} wrote output`;
    this.#startedAt = new Date(options.timers.now()).toISOString();
    this.#viewers = new Viewers({ timers: options.timers, onDead: (viewer) => this.detach(viewer) });
    this.#grace = new Grace({
      seconds: options.graceSeconds,
      timers: options.timers,
      onOver: () => options.onGraceOver(),
    });
    this.#pty = new Pty({
      ...options,
      onOutput: (bytes) => this.#output(bytes),
      onInputTaken: () => this.#inputTaken(),
      onExit: (ending) => this.#programEnded(ending),
    });
    this.#seat = options.turns.join({
      pause: () => this.#pty.hold("turn"),
      resume: () => this.#pty.release("turn"),
    });
    this.#countGrace();
  }

  get leader(): ProcessRef {
    return this.#pty.leader;
  }

  get ptyId(): string {
    return this.#options.ptyId;
  }

  /** Resolves when the program has ended and its last output is in the replay buffer. */
  get ended(): Promise<TerminalExit> {
    return this.#ended.promise;
  }

  get exit(): TerminalExit | undefined {
    return this.#exit;
  }

  facts(): TerminalFacts {
    const { terminalId, ptyId, command, cwd } = this.#options;
    return {
      terminalId,
      ptyId,
      pid: this.#pty.leader.pid,
      command,
      cwd,
      state: this.#exit === undefined ? "running" : "exited",
      ...this.#size,
      viewers: this.#viewers.count,
      writers: this.#viewers.writers,
      graceSeconds: this.#grace.seconds,
      startedAt: this.#startedAt,
      firstOffset: this.#ring.start,
      nextOffset: this.#ring.end,
      ...(this.#exit !== undefined && { exit: this.#exit }),
    };
  }

  resize(size: TerminalSize): void {
    if (this.#exit !== undefined) throw ended("resize", this.#options.terminalId);
    this.#size = size;
    this.#pty.resize(size);
    this.#viewers.say({ type: "resize", ...size });
  }

  setGrace(graceSeconds: number | null): void {
    this.#grace.change(graceSeconds);
    this.#countGrace();
  }

  /** Adds a viewer, who first gets the replay. It stays until `detach`. */
  attach(socket: ViewerSocket, query: TerminalConnectQuery): Viewer {
    this.#checkSince(query);
    const viewer = new Viewer({
      socket,
      ring: this.#ring,
      modes: this.#modes,
      from: query.since ?? 0,
      window: query.window,
      readonly: query.readonly ?? false,
    });
    this.#viewers.add(viewer);
    this.#countGrace();
    this.#greet(viewer, query.since ?? 0);
    return viewer;
  }

  detach(viewer: Viewer): void {
    if (!this.#viewers.remove(viewer)) return;
    if (!viewer.readonly) this.#options.use.note(`a viewer of terminal ${this.#options.terminalId} left`);
    this.#pace();
    this.#countGrace();
  }

  ack(viewer: Viewer, offset: number): void {
    viewer.ack(offset);
    this.#pace();
  }

  /** The viewer's socket takes more. */
  flowed(viewer: Viewer): void {
    viewer.pump();
    this.#pace();
  }

  input(viewer: Viewer, bytes: Uint8Array): void {
    if (viewer.readonly) throw readOnly("type");
    if (this.#pty.pendingInputBytes + bytes.length > INPUT_LIMIT_BYTES) throw inputUnread();
    this.#pty.write(bytes);
    if (this.#inputFull || this.#pty.pendingInputBytes < INPUT_FULL_BYTES) return;
    this.#inputFull = true;
    this.#viewers.sayToWriters({ type: "input", state: "full" });
  }

  resizeBy(viewer: Viewer, size: TerminalSize): void {
    if (viewer.readonly) throw readOnly("resize");
    this.resize(size);
  }

  /** Whoever ends the program says first why, so that its exit tells. */
  endBecause(cause: TerminalExit["cause"]): void {
    if (this.#exit === undefined) this.#endCause = cause;
  }

  /** Gives up waiting for a program that was killed and whose end does not show. */
  abandon(): void {
    this.#pty.close();
  }

  #greet(viewer: Viewer, offset: number): void {
    const { terminalId, ptyId } = this.#options;
    viewer.say({ type: "ready", terminalId, ptyId, offset, ...this.#size, readonly: viewer.readonly });
    const cut = offset < this.#ring.start;
    if (this.#exit !== undefined) viewer.finish(this.#exit);
    else this.flowed(viewer);
    // The replay begins in the middle, so only the program itself can make the screen whole.
    if (cut) this.#pty.askForRedraw();
  }

  #checkSince({ since, ptyId }: TerminalConnectQuery): void {
    const sameOne = ptyId === undefined || ptyId === this.#options.ptyId;
    if (sameOne && (since ?? 0) <= this.#ring.end) return;
    throw new HoldfastError("state_lost", `terminal ${this.#options.terminalId} has a new program since`, {
      details: { ptyId: this.#options.ptyId, nextOffset: this.#ring.end },
      hint: "attach without `since` to see the new one from its beginning",
    });
  }

  #output(bytes: Uint8Array): void {
    this.#ring.append(bytes, (lost) => this.#modes.learn(lost));
    this.#viewers.pump();
    this.#pace();
    this.#seat.took(bytes.length);
    this.#options.use.note(this.#wroteOutput);
  }

  /** The slowest of those who may write sets the program's pace. */
  #pace(): void {
    const { lag } = this.#viewers;
    if (lag > FAR_BEHIND_BYTES) this.#pty.hold("viewer");
    else if (lag < NEAR_BYTES) this.#pty.release("viewer");
  }

  #inputTaken(): void {
    if (!this.#inputFull) return;
    this.#inputFull = false;
    this.#viewers.sayToWriters({ type: "input", state: "open" });
  }

  #programEnded(ending: Exit): void {
    const at = new Date(this.#options.timers.now()).toISOString();
    const exit = { ...ending, cause: this.#endCause, at };
    this.#exit = exit;
    this.#seat.leave();
    this.#grace.stop();
    this.#viewers.finish(exit);
    this.#ended.resolve(exit);
    this.#options.onExit();
  }

  /** Runs from the moment the last writer left; who merely looks on neither stops nor restarts it. */
  #countGrace(): void {
    if (this.#exit === undefined && this.#viewers.writers === 0) this.#grace.count();
    else this.#grace.stop();
  }
}

function readOnly(verb: string): HoldfastError {
  return new HoldfastError("forbidden", `cannot ${verb}: this viewer is attached read-only`, {
    hint: "attach without readonly=true",
  });
}

function inputUnread(): HoldfastError {
  return new HoldfastError("limit_reached", "the program does not read what is typed", {
    details: { limitBytes: INPUT_LIMIT_BYTES },
    hint: "wait for the frame `input` with state `open` after one with state `full`, or write to a file instead",
  });
}

function ended(verb: string, terminalId: string): HoldfastError {
  return new HoldfastError("wrong_state", `cannot ${verb} terminal ${terminalId}: its program has ended`, {
    hint: "create it again to get a new program under the same id",
  });
}
