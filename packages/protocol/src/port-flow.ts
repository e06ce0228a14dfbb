import type { ErrorBody } from "./errors.ts";

/**
 * A connection to a port inside, between keeper and server: a WebSocket of its own. Binary messages are its bytes and
 * nothing else; text messages are the JSON below. A WebSocket cannot be told to wait, so each side counts: it never
 * has more than a window of bytes on the way that the other has not passed on.
 */
export type PortMessage =
  /** First of all from the keeper: the program inside has taken the connection, … */
  | { type: "open" }
  /** … or there will be none. */
  | { type: "refused"; error: ErrorBody["error"] }
  /** So many bytes more were passed on. */
  | { type: "taken"; bytes: number }
  /** The sender has no more bytes, and still takes some. */
  | { type: "end" };

/** Enough for a gigabyte per second over a local socket; a thousand slow visitors hold a quarter of a gigabyte. */
export const PORT_WINDOW_BYTES = 256 * 1024;
/** Told in few messages, and long before the window is used up. */
const TELL_EVERY_BYTES = PORT_WINDOW_BYTES / 4;
const LARGEST_MESSAGE_BYTES = 64 * 1024;

export interface PortFlowOptions {
  send(message: string | Uint8Array): void;
  onBytes(bytes: Uint8Array): void;
  onEnd(): void;
  /** There is room again after `send` said that there is none. */
  onRoom(): void;
  onOpen?(): void;
  onRefused?(error: ErrorBody["error"]): void;
  /** The other side does not keep to the rules: the connection must be ended. */
  onBroken(): void;
}

/** One side's count of a port's connection. It has no socket of its own. */
export class PortFlow {
  readonly #options: PortFlowOptions;
  #room = PORT_WINDOW_BYTES;
  #held = 0;
  #untold = 0;

  constructor(options: PortFlowOptions) {
    this.#options = options;
  }

  /** Sends all of it. False: wait for `onRoom` before there is more. */
  send(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at += LARGEST_MESSAGE_BYTES)
      this.#options.send(bytes.subarray(at, at + LARGEST_MESSAGE_BYTES));
    this.#room -= bytes.length;
    return this.#room > 0;
  }

  say(message: PortMessage): void {
    this.#options.send(JSON.stringify(message));
  }

  /** So many bytes that were heard are passed on. */
  taken(bytes: number): void {
    this.#held -= bytes;
    this.#untold += bytes;
    if (this.#untold < TELL_EVERY_BYTES) return;
    this.say({ type: "taken", bytes: this.#untold });
    this.#untold = 0;
  }

  hear(message: string | Uint8Array): void {
    const { onBytes, onBroken } = this.#options;
    if (typeof message === "string") {
      if (!this.#heed(parsed(message))) onBroken();
      return;
    }
    this.#held += message.length;
    // What was read in one piece may go over the window, once.
    if (this.#held <= 8 * PORT_WINDOW_BYTES) onBytes(message);
    else onBroken();
  }

  /** False: it makes no sense. */
  #heed(message: PortMessage | undefined): boolean {
    const { onOpen, onRefused, onEnd } = this.#options;
    switch (message?.type) {
      case "open":
        onOpen?.();
        return true;
      case "refused":
        onRefused?.(message.error);
        return true;
      case "end":
        onEnd();
        return true;
      case "taken":
        return this.#makeRoom(message.bytes);
      default:
        return false;
    }
  }

  #makeRoom(bytes: number): boolean {
    if (!Number.isSafeInteger(bytes) || bytes <= 0) return false;
    const wasFull = this.#room <= 0;
    this.#room = Math.min(this.#room + bytes, PORT_WINDOW_BYTES);
    if (wasFull && this.#room > 0) this.#options.onRoom();
    return true;
  }
}

function parsed(text: string): PortMessage | undefined {
  try {
    return JSON.parse(text) as PortMessage;
  } catch {
    return undefined;
  }
}
