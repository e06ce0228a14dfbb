import { type TerminalExit, type ToViewer, terminalCloseCode } from "@holdfast/protocol";
import type { ScreenModes } from "@holdfast/protocol/screen-modes";
import type { Ring } from "./ring.ts";

// One frame's worth: large enough to be cheap, small enough that a key's echo does not wait behind it.
const FRAME_BYTES = 32 * 1024;
// What may wait in a socket: enough to keep a fast line busy, little beside the replay buffer.
const SOCKET_BYTES = 256 * 1024;
// A viewer that answered nothing in two whole pulses is dead, or as good as.
const PULSES_TO_ANSWER = 2;

/** What a viewer needs of its WebSocket; `Bun.ServerWebSocket` has it. */
export interface ViewerSocket {
  sendText(text: string): number;
  sendBinary(bytes: Uint8Array): number;
  getBufferedAmount(): number;
  ping(): number;
  close(code: number, reason: string): void;
}

export interface ViewerOptions {
  readonly socket: ViewerSocket;
  readonly ring: Ring;
  readonly modes: ScreenModes;
  /** Offset of the first byte to send. */
  readonly from: number;
  /** Bound of what was sent and not yet acknowledged; without one, what the socket takes is the bound. */
  readonly window: number | undefined;
  readonly readonly: boolean;
}

/**
 * One who watches. It reads from the ring at its own pace and keeps nothing of its own, so that a thousand slow
 * viewers cost a thousand offsets.
 */
export class Viewer {
  readonly readonly: boolean;
  readonly #options: ViewerOptions;
  #sent: number;
  #acked: number;
  #exit: TerminalExit | undefined;
  #silentPulses = 0;
  #closed = false;

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.readonly = options.readonly;
    this.#sent = options.from;
    this.#acked = options.from;
  }

  /** How many bytes of output it has still to be sent. */
  get lag(): number {
    return this.#options.ring.end - this.#sent;
  }

  /** Sends what there is, as far as the viewer takes it. To be called when there may be more of either. */
  pump(): void {
    const { ring, socket } = this.#options;
    while (!this.#closed && this.#sent < ring.end) {
      const room = this.#room();
      if (room <= 0) return;
      if (this.#sent < ring.start) this.#skipTo(ring.start);
      const bytes = ring.read(this.#sent, Math.min(FRAME_BYTES, room));
      socket.sendBinary(bytes);
      this.#sent += bytes.length;
    }
    if (this.#exit !== undefined) this.#sayExit(this.#exit);
  }

  /** The program ended: once everything is sent, so is this, and the socket is closed. */
  finish(exit: TerminalExit): void {
    this.#exit = exit;
    this.pump();
  }

  ack(offset: number): void {
    if (offset <= this.#acked || offset > this.#sent) return;
    this.#acked = offset;
    this.heard();
    this.pump();
  }

  /** It gave a sign of life. For a viewer that owes acknowledgements only those count: a hung page answers pings. */
  pong(): void {
    if (this.#options.window === undefined || this.#acked === this.#sent) this.heard();
  }

  heard(): void {
    this.#silentPulses = 0;
  }

  /** Called regularly; closes one that has not answered for too long and says so by returning `dead`. */
  pulse(): "alive" | "dead" {
    if (this.#silentPulses >= PULSES_TO_ANSWER) {
      this.close(terminalCloseCode.stalled, "no answer");
      return "dead";
    }
    this.#silentPulses++;
    this.#options.socket.ping();
    return "alive";
  }

  say(frame: ToViewer): void {
    if (!this.#closed) this.#options.socket.sendText(JSON.stringify(frame));
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.socket.close(code, reason);
  }

  #room(): number {
    const { window, socket } = this.#options;
    const inSocket = SOCKET_BYTES - socket.getBufferedAmount();
    return window === undefined ? inSocket : Math.min(inSocket, window - (this.#sent - this.#acked));
  }

  #skipTo(offset: number): void {
    this.say({ type: "truncated", from: this.#sent, to: offset, restore: this.#options.modes.restore });
    // What is on its way stays on its way.
    this.#acked += offset - this.#sent;
    this.#sent = offset;
  }

  #sayExit(exit: TerminalExit): void {
    this.say({ type: "exit", exit });
    const destroyed = exit.cause === "program" ? "exited" : "destroyed";
    this.close(terminalCloseCode[destroyed], exit.cause);
  }
}
