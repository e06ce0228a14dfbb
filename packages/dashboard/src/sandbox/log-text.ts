import type { LogEvent } from "holdfast";

// As much as a page can show without getting slow; `holdfast logs` has all of it.
const MOST_CHARACTERS = 256 * 1024;
const DRAW_MS = 50;

/** The end of a log as text, drawn a few times a second however fast it comes. */
export class LogText {
  readonly #draw: (text: string) => void;
  // A character may be split between two pieces, and each stream has its own.
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #text = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(draw: (text: string) => void) {
    this.#draw = draw;
  }

  add(event: LogEvent): void {
    this.#append(this.#textOf(event));
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#draw(this.#text);
    }, DRAW_MS);
  }

  #textOf(event: LogEvent): string {
    switch (event.type) {
      case "stdout":
      case "stderr":
        return withoutColours(this.#decoders[event.type].decode(event.bytes, { stream: true }));
      case "truncated":
        return `\n… ${event.to - event.from} bytes are no longer kept …\n`;
      default:
        return "";
    }
  }

  #append(more: string): void {
    const text = this.#text + more;
    if (text.length <= MOST_CHARACTERS * 1.25) this.#text = text;
    else this.#text = text.slice(text.indexOf("\n", text.length - MOST_CHARACTERS) + 1);
  }
}

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: these are the characters in question
// ESC [ … letter, and ESC ] … up to BEL or ESC \.
const CONTROL = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: these are the characters in question

/** A log is not a terminal: what would move a cursor or change a colour there is left out. */
export function withoutColours(text: string): string {
  return text.replace(CONTROL, "").replaceAll("\r\n", "\n");
}
