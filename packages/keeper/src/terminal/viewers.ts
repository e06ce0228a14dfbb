import type { TerminalExit, ToViewer } from "@holdfast/protocol";
import type { Timers } from "./timers.ts";
import type { Viewer } from "./viewer.ts";

// Two of these without an answer and a viewer is dropped: long enough for a bad line, short for a held program.
const PULSE_MS = 5_000;

/** Those who watch one terminal. While there are any, each is asked now and then whether it still is there. */
export class Viewers {
  readonly #timers: Timers;
  readonly #onDead: (viewer: Viewer) => void;
  readonly #all = new Set<Viewer>();
  #cancelPulse: (() => void) | undefined;

  /** A dead one is closed already, and has still to be removed. */
  constructor(options: { timers: Timers; onDead: (viewer: Viewer) => void }) {
    this.#timers = options.timers;
    this.#onDead = options.onDead;
  }

  get count(): number {
    return this.#all.size;
  }

  /** How many of them may write. */
  get writers(): number {
    return this.#writers().length;
  }

  /** How far behind the slowest of those is who may write; one who merely looks on never slows the work. */
  get lag(): number {
    return Math.max(0, ...this.#writers().map(({ lag }) => lag));
  }

  add(viewer: Viewer): void {
    this.#all.add(viewer);
    this.#armPulse();
  }

  /** False if it was removed before. */
  remove(viewer: Viewer): boolean {
    const was = this.#all.delete(viewer);
    if (this.#all.size === 0) this.#stopPulse();
    return was;
  }

  pump(): void {
    for (const viewer of this.#all) viewer.pump();
  }

  say(frame: ToViewer): void {
    for (const viewer of this.#all) viewer.say(frame);
  }

  sayToWriters(frame: ToViewer): void {
    for (const viewer of this.#writers()) viewer.say(frame);
  }

  finish(exit: TerminalExit): void {
    for (const viewer of this.#all) viewer.finish(exit);
  }

  #writers(): Viewer[] {
    return [...this.#all].filter((viewer) => !viewer.readonly);
  }

  #armPulse(): void {
    this.#cancelPulse ??= this.#timers.after(PULSE_MS, () => {
      this.#cancelPulse = undefined;
      for (const viewer of this.#all) if (viewer.pulse() === "dead") this.#onDead(viewer);
      if (this.#all.size > 0) this.#armPulse();
    });
  }

  #stopPulse(): void {
    this.#cancelPulse?.();
    this.#cancelPulse = undefined;
  }
}
