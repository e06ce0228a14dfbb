import type { KeeperLink } from "@holdfast/keeper-link";
import { HoldfastError, TERMINAL_SUBPROTOCOL, terminalCloseCode } from "@holdfast/protocol";

/**
 * Between a viewer's socket and its terminal in the keeper. Frames pass as they are. A viewer that does not
 * acknowledge what it took is acknowledged for by us, when our own buffer towards it is empty: so a slow viewer paces
 * the program and nothing piles up here, whoever the viewer is.
 */
export class TerminalRelay {
  readonly #open: () => WebSocket;
  readonly #acksItself: boolean;
  readonly #meter: Meter;
  #viewer: Bun.ServerWebSocket<TerminalRelay> | undefined;
  #keeper: WebSocket | undefined;
  /** Offset after the last byte that was passed to the viewer. */
  #passed = 0;

  constructor(
    { link, claimFence }: { link: KeeperLink; claimFence?: number },
    options: { terminalId: string; query: URLSearchParams; meter: Meter },
  ) {
    this.#meter = options.meter;
    const query = new URLSearchParams(options.query);
    this.#acksItself = query.has("window");
    if (!this.#acksItself) query.set("window", String(WINDOW_BYTES));
    const path = `/terminals/${encodeURIComponent(options.terminalId)}/connect?${query}`;
    const claim = claimFence === undefined ? {} : { claimFence };
    this.#open = () => link.webSocket(path, [TERMINAL_SUBPROTOCOL], claim);
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
    this.#meter.received(message.length);
    // Nothing is typed before `ready`, which comes over the open socket.
    if (this.#keeper?.readyState === WebSocket.OPEN) this.#keeper.send(message);
  }

  /** The viewer's buffer is empty again. */
  drained(): void {
    this.#acknowledge();
  }

  closed(): void {
    this.#keeper?.close();
    this.#meter.end();
  }

  #toViewer(data: string | ArrayBuffer): void {
    if (typeof data === "string") this.#passText(data);
    else this.#passBytes(new Uint8Array(data));
  }

  #passBytes(bytes: Uint8Array<ArrayBuffer>): void {
    this.#viewer?.sendBinary(bytes);
    this.#meter.sent(bytes.byteLength);
    this.#passed += bytes.byteLength;
    this.#acknowledge();
  }

  /** Keeps the offset in step with what the keeper says about it; a keeper that talks nonsense is not listened to. */
  #passText(text: string): void {
    const offset = offsetAfter(text, this.#passed);
    if (offset === undefined) {
      this.#giveUp();
      return;
    }
    this.#passed = offset;
    this.#viewer?.sendText(text);
  }

  #giveUp(): void {
    const error = new HoldfastError("internal", "the sandbox's keeper said something that makes no sense", {
      hint: "the workload may have tampered with its keeper: look at the timeline, or recreate the sandbox",
    });
    this.#viewer?.sendText(JSON.stringify({ type: "error", ...error.toBody() }));
    this.#viewer?.close(terminalCloseCode.refused, "the keeper makes no sense");
    this.#keeper?.close();
  }

  #acknowledge(): void {
    if (this.#acksItself || this.#viewer?.getBufferedAmount() !== 0) return;
    if (this.#keeper?.readyState !== WebSocket.OPEN) return;
    this.#keeper.send(JSON.stringify({ type: "ack", offset: this.#passed }));
  }
}

/** Told of what passes, and of the viewer's end. */
interface Meter {
  received(bytes: number): void;
  sent(bytes: number): void;
  end(): void;
}

/** On the way to a viewer that does not acknowledge: enough for a fast line, little enough for ten thousand viewers. */
const WINDOW_BYTES = 256 * 1024;

/** The offset of the next byte, after this frame; `undefined` if it is none. */
function offsetAfter(text: string, before: number): number | undefined {
  const frame = parsed(text);
  if (frame === undefined) return undefined;
  const said = frame.type === "ready" ? frame.offset : frame.type === "truncated" ? frame.to : before;
  return Number.isSafeInteger(said) && Number(said) >= 0 ? Number(said) : undefined;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === "object" && frame !== null ? { ...frame } : undefined;
  } catch {
    return undefined;
  }
}

/** A keeper that vanished (1006) may be back in a moment; 1006 itself must not be sent. */
function closeCode(code: number): number {
  return code === 1006 || code === 1005 ? terminalCloseCode.stalled : code;
}
