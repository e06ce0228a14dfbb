import type { KeeperLink } from "@holdfast/keeper-link";
import { TERMINAL_SUBPROTOCOL, terminalCloseCode } from "@holdfast/protocol";

/**
 * Between a viewer's socket and its terminal in the keeper. Frames pass as they are. A viewer that does not
 * acknowledge what it took is acknowledged for by us, when our own buffer towards it is empty: so a slow viewer paces
 * the program and nothing piles up here, whoever the viewer is.
 */
export class TerminalRelay {
  readonly #open: () => WebSocket;
  readonly #acksItself: boolean;
  #viewer: Bun.ServerWebSocket<TerminalRelay> | undefined;
  #keeper: WebSocket | undefined;
  /** Offset after the last byte that was passed to the viewer. */
  #passed = 0;

  constructor(link: KeeperLink, options: { terminalId: string; query: URLSearchParams }) {
    const query = new URLSearchParams(options.query);
    this.#acksItself = query.has("window");
    if (!this.#acksItself) query.set("window", String(WINDOW_BYTES));
    const path = `/terminals/${encodeURIComponent(options.terminalId)}/connect?${query}`;
    this.#open = () => link.webSocket(path, [TERMINAL_SUBPROTOCOL]);
  }

  /** The viewer's side is open. */
  opened(viewer: Bun.ServerWebSocket<TerminalRelay>): void {
    this.#viewer = viewer;
    const keeper = this.#open();
    keeper.binaryType = "arraybuffer";
    keeper.onmessage = (event) => this.#toViewer(event.data);
    keeper.onclose = (event) => viewer.close(closeCode(event.code), event.reason);
    this.#keeper = keeper;
  }

  fromViewer(message: string | Buffer<ArrayBuffer>): void {
    // Nothing is typed before `ready`, which comes over the open socket.
    if (this.#keeper?.readyState === WebSocket.OPEN) this.#keeper.send(message);
  }

  /** The viewer's buffer is empty again. */
  drained(): void {
    this.#acknowledge();
  }

  closed(): void {
    this.#keeper?.close();
  }

  #toViewer(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      this.#follow(data);
      this.#viewer?.sendText(data);
      return;
    }
    this.#viewer?.sendBinary(new Uint8Array(data));
    this.#passed += data.byteLength;
    this.#acknowledge();
  }

  /** Keeps the offset in step with what the keeper says about it. */
  #follow(text: string): void {
    const frame = JSON.parse(text) as { type?: string; offset?: number; to?: number };
    if (frame.type === "ready") this.#passed = frame.offset ?? 0;
    if (frame.type === "truncated") this.#passed = frame.to ?? this.#passed;
  }

  #acknowledge(): void {
    if (this.#acksItself || this.#viewer?.getBufferedAmount() !== 0) return;
    if (this.#keeper?.readyState !== WebSocket.OPEN) return;
    this.#keeper.send(JSON.stringify({ type: "ack", offset: this.#passed }));
  }
}

/** On the way to a viewer that does not acknowledge: enough for a fast line, little enough for ten thousand viewers. */
const WINDOW_BYTES = 256 * 1024;

/** A keeper that vanished (1006) may be back in a moment; 1006 itself must not be sent. */
function closeCode(code: number): number {
  return code === 1006 || code === 1005 ? terminalCloseCode.stalled : code;
}
