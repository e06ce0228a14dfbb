import { ScreenModes } from "holdfast";
import { write } from "../print.ts";
import { makeRaw } from "./raw-mode.ts";

/**
 * Our own terminal, lent to a program in a sandbox: raw, so that every key reaches the program, and given back as it
 * was in every case, also when we are ended or fail. What is not a terminal is left alone.
 */
export class Screen {
  readonly #modes = new ScreenModes();
  readonly #giveBack = () => this.giveBack();
  #lent = false;
  #cook: (() => void) | undefined;

  take(): void {
    this.#lent = true;
    this.#cook = makeRaw();
    process.once("exit", this.#giveBack);
  }

  /** The size to tell the program, if we have a screen. */
  get size(): { cols: number; rows: number } | undefined {
    const { columns: cols, rows } = process.stdout;
    return process.stdout.isTTY && cols > 0 && rows > 0 ? { cols, rows } : undefined;
  }

  /** Whether a program has the whole screen, which a line of ours would spoil. */
  get isFullScreen(): boolean {
    return this.#modes.restore.includes("\x1b[?1049h");
  }

  async show(bytes: Uint8Array): Promise<void> {
    this.#modes.learn(bytes);
    await write(process.stdout, bytes);
  }

  /** A line of ours, on standard error, at the beginning of a line. */
  async say(text: string): Promise<void> {
    const [start, end] = process.stderr.isTTY && this.#lent ? ["\r\n", "\r\n"] : ["", "\n"];
    await write(process.stderr, `${start}holdfast: ${text}${end}`);
  }

  /** May be called twice. Writes without waiting, because it is also the last thing before the end. */
  giveBack(): void {
    if (!this.#lent) return;
    this.#lent = false;
    process.off("exit", this.#giveBack);
    if (process.stdout.isTTY) process.stdout.write(this.#modes.undo);
    this.#cook?.();
  }
}
