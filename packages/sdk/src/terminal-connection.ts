import type { TerminalExit } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { type FromViewer, type ToViewer, terminalCloseCode } from "@holdfast/protocol/terminal-socket";

export interface ConnectionEvents {
  /** The next byte has this offset. */
  ready(frame: ToViewer & { type: "ready" }): void;
  bytes(bytes: Uint8Array): void;
  frame(frame: Exclude<ToViewer, { type: "ready" | "exit" | "error" }>): void;
}

/** How a connection ended: the program did, somebody must not come back, or it merely broke. */
export type ConnectionEnd =
  | { kind: "exited"; exit: TerminalExit }
  | { kind: "refused"; error: HoldfastError }
  | { kind: "broken"; reason: string };

/** One WebSocket, from its opening to its end. It does not come back by itself. */
export class TerminalConnection {
  readonly #socket: WebSocket;
  readonly #events: ConnectionEvents;
  readonly ended: Promise<ConnectionEnd>;
  #exit: TerminalExit | undefined;
  #error: HoldfastError | undefined;

  constructor(socket: WebSocket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#took(data);
    this.ended = new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => resolve(this.#end(code, reason));
    });
  }

  get isOpen(): boolean {
    return this.#socket.readyState === 1;
  }

  /** Bytes that the runtime has not sent yet. */
  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }

  type(bytes: Uint8Array): void {
    this.#socket.send(bytes as Uint8Array<ArrayBuffer>);
  }

  say(frame: FromViewer): void {
    if (this.isOpen) this.#socket.send(JSON.stringify(frame));
  }

  close(): void {
    this.#socket.close(1000);
  }

  #took(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.#events.bytes(new Uint8Array(data));
      return;
    }
    const frame = JSON.parse(data) as ToViewer;
    if (frame.type === "ready") this.#events.ready(frame);
    else if (frame.type === "exit") this.#exit = frame.exit;
    // Told last before the socket is closed for it; what leaves it open was a mistake that we do not make.
    else if (frame.type === "error") this.#error = HoldfastError.fromBody(frame);
    else this.#events.frame(frame);
  }

  #end(code: number, reason: string): ConnectionEnd {
    if (this.#exit !== undefined) return { kind: "exited", exit: this.#exit };
    if (code === terminalCloseCode.refused && this.#error !== undefined)
      return { kind: "refused", error: this.#error };
    return { kind: "broken", reason: reason === "" ? `closed with ${code}` : reason };
  }
}
