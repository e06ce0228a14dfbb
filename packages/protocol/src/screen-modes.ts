/**
 * What a screen has been told to do by a program's output: private modes (alternate screen, cursor, mouse, bracketed
 * paste, …), the keypad and the scroll region. The keeper learns it from output that it no longer keeps: a viewer whose
 * replay begins in the middle is told these first, or an editor would be drawn over the shell's screen. Who lends its
 * own screen to a terminal learns it from everything, to leave the screen as it was.
 *
 * Only the few sequences below are understood. Everything else passes.
 */
const ESC = 0x1b;
// The longest sequence worth waiting for; a longer one is none of ours.
const MAX_SEQUENCE_BYTES = 64;

const PRIVATE_MODE = /^\[\?([0-9;]+)([hl])$/;
const SCROLL_REGION = /^\[[0-9;]*r$/;
const KEYPAD = /^[=>]$/;
const KEYPAD_APPLICATION = "\x1b=";
const KEYPAD_NORMAL = "\x1b>";
const SOFT_RESET = "[!p";
const FULL_RESET = "c";
const WHOLE = /^(?:[^[]|\[[0-?]*[ -/]*[@-~])/;

// How a terminal begins: wraps lines and shows its cursor.
const SET_AT_FIRST: ReadonlySet<string> = new Set(["7", "25"]);

/**
 * What a screen must be told, so that it is as a program's output left it, or as it was before.
 *
 * @example
 * ```ts
 * const modes = new ScreenModes();
 * modes.learn(new TextEncoder().encode("\x1b[?1049h"));   // the alternate screen, as an editor asks for it
 * console.log(JSON.stringify(modes.undo));
 * ```
 */
export class ScreenModes {
  readonly #set = new Map<string, boolean>();
  #keypad = "";
  #scrollRegion = "";
  /** The beginning of a sequence whose rest has not been seen. */
  #open = "";

  /** The bytes that bring a fresh screen to where the lost output left it, cut sequence included. */
  get restore(): string {
    let text = "";
    for (const [mode, on] of this.#set) {
      if (on !== SET_AT_FIRST.has(mode)) text += `\x1b[?${mode}${on ? "h" : "l"}`;
    }
    return text + this.#keypad + this.#scrollRegion + this.#open;
  }

  /** The bytes that bring the screen back to how a terminal begins. */
  get undo(): string {
    let text = "";
    for (const [mode, on] of [...this.#set].reverse()) {
      if (on !== SET_AT_FIRST.has(mode)) text += `\x1b[?${mode}${on ? "l" : "h"}`;
    }
    if (this.#keypad === KEYPAD_APPLICATION) text += KEYPAD_NORMAL;
    // Setting the region moves the cursor, so that is saved around it.
    if (this.#scrollRegion !== "") text += "\x1b7\x1b[r\x1b8";
    return text;
  }

  /**
   * Takes in a piece of output, wherever it was cut.
   *
   * @example
   * ```ts
   * new ScreenModes().learn(new Uint8Array([27, 91]));
   * ```
   */
  learn(bytes: Uint8Array): void {
    let at = 0;
    if (this.#open !== "") at = this.#goOn(bytes, 0);
    for (at = bytes.indexOf(ESC, at); at >= 0; at = bytes.indexOf(ESC, at)) {
      this.#open = "\x1b";
      at = this.#goOn(bytes, at + 1);
    }
  }

  /** Takes bytes into the open sequence until it is whole or hopeless; returns where it stopped. */
  #goOn(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === ESC || this.#open.length > MAX_SEQUENCE_BYTES) {
        this.#open = "";
        return at;
      }
      this.#open += String.fromCharCode(byte);
      const sequence = this.#open.slice(1);
      if (!WHOLE.test(sequence)) continue;
      this.#open = "";
      this.#obey(sequence);
      return at + 1;
    }
    return bytes.length;
  }

  #obey(sequence: string): void {
    const [, modes, action] = PRIVATE_MODE.exec(sequence) ?? [];
    if (modes !== undefined) for (const mode of modes.split(";")) this.#switch(mode, action === "h");
    else if (SCROLL_REGION.test(sequence)) this.#scrollRegion = `\x1b${sequence}`;
    else if (KEYPAD.test(sequence)) this.#keypad = `\x1b${sequence}`;
    else if (sequence === SOFT_RESET || sequence === FULL_RESET) this.#forget();
  }

  /** Last set is last restored: the order of modes can matter. */
  #switch(mode: string, on: boolean): void {
    this.#set.delete(mode);
    // A hostile program could name a million modes; a terminal knows a few dozen.
    if (this.#set.size < 100) this.#set.set(mode, on);
  }

  #forget(): void {
    this.#set.clear();
    this.#keypad = "";
    this.#scrollRegion = "";
  }
}
