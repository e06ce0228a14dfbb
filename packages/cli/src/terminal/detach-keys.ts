const CTRL_P = 0x10;
const CTRL_Q = 0x11;

// Long enough for two keys meant as one; short enough that a lone Ctrl-P, the shell's last line, still feels prompt.
const HOLD_MS = 400;

export interface DetachKeysOptions {
  send(bytes: Uint8Array): void;
  detach(): void;
  /** Calls `action` once after `ms`, unless the returned function is called first. */
  after(ms: number, action: () => void): () => void;
}

/** Finds Ctrl-P Ctrl-Q in what is typed. Everything else passes, a Ctrl-P that nothing follows after a moment. */
export class DetachKeys {
  readonly #options: DetachKeysOptions;
  #cancelHold: (() => void) | undefined;

  constructor(options: DetachKeysOptions) {
    this.#options = options;
  }

  push(typed: Uint8Array): void {
    const held = this.#cancelHold !== undefined;
    this.#letGo();
    const bytes = held ? Uint8Array.of(CTRL_P, ...typed) : typed;
    const at = bytes.findIndex((byte, i) => byte === CTRL_P && bytes[i + 1] === CTRL_Q);
    if (at >= 0) {
      this.#send(bytes.subarray(0, at));
      this.#options.detach();
    } else if (bytes.at(-1) === CTRL_P) {
      this.#send(bytes.subarray(0, -1));
      this.#hold();
    } else this.#send(bytes);
  }

  /** Nothing more is typed; what is held passes. */
  flush(): void {
    const held = this.#cancelHold !== undefined;
    this.#letGo();
    if (held) this.#send(Uint8Array.of(CTRL_P));
  }

  #hold(): void {
    this.#cancelHold = this.#options.after(HOLD_MS, () => this.flush());
  }

  #letGo(): void {
    this.#cancelHold?.();
    this.#cancelHold = undefined;
  }

  #send(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#options.send(bytes);
  }
}
