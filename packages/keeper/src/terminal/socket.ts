import {
  type FromViewer,
  FromViewerFrame,
  HoldfastError,
  type TerminalConnectQuery,
  type ToViewer,
  terminalCloseCode,
} from "@holdfast/protocol";
import type { SocketHandler } from "../http/guard.ts";
import type { Terminal } from "./terminal.ts";
import type { Terminals } from "./terminals.ts";
import type { Viewer } from "./viewer.ts";

type Socket = Bun.ServerWebSocket<SocketHandler>;

export interface TerminalSocketOptions {
  readonly terminals: Terminals;
  readonly terminalId: string;
  readonly query: TerminalConnectQuery;
  /** Throws if who attached may not write any more. */
  checkClaim(): void;
}

/**
 * A viewer's connection, from its upgrade on. What is wrong with the request is said in an `error` frame and not in
 * the answer to the upgrade, because a page gets to see only the former.
 */
export class TerminalSocket implements SocketHandler {
  readonly #terminals: Terminals;
  readonly #terminalId: string;
  readonly #query: TerminalConnectQuery;
  readonly #checkClaim: () => void;
  #attached: { readonly terminal: Terminal; readonly viewer: Viewer } | undefined;

  constructor(options: TerminalSocketOptions) {
    this.#terminals = options.terminals;
    this.#terminalId = options.terminalId;
    this.#query = options.query;
    this.#checkClaim = options.checkClaim;
  }

  open(socket: Socket): void {
    orRefuse(socket, () => {
      const terminal = this.#terminals.get(this.#terminalId);
      this.#attached = { terminal, viewer: terminal.attach(socket, this.#query) };
    });
  }

  message(socket: Socket, message: string | Buffer): void {
    if (this.#attached === undefined) return;
    const { terminal, viewer } = this.#attached;
    viewer.heard();
    orRefuse(socket, () => {
      const frame = typeof message === "string" ? parseFrame(message) : { type: "input" as const, message };
      if (frame.type === "ack") return terminal.ack(viewer, frame.offset);
      if (!viewer.readonly) this.#checkClaim();
      if (frame.type === "input") return terminal.input(viewer, frame.message);
      terminal.resizeBy(viewer, { cols: frame.cols, rows: frame.rows });
    });
  }

  drain(): void {
    if (this.#attached !== undefined) this.#attached.terminal.flowed(this.#attached.viewer);
  }

  pong(): void {
    this.#attached?.viewer.pong();
  }

  close(): void {
    if (this.#attached !== undefined) this.#attached.terminal.detach(this.#attached.viewer);
    this.#attached = undefined;
  }
}

/** A mistake that leaves the viewer attached is told; anything else ends the connection. */
function orRefuse(socket: Socket, action: () => void): void {
  try {
    action();
  } catch (error) {
    const told = error instanceof HoldfastError ? error : new HoldfastError("internal", String(error));
    socket.sendText(JSON.stringify({ type: "error", ...told.toBody() } satisfies ToViewer));
    if (told.code !== "forbidden" && told.code !== "wrong_state") {
      socket.close(terminalCloseCode.refused, told.code);
    }
  }
}

function parseFrame(text: string): FromViewer {
  const parsed = FromViewerFrame.safeParse(jsonOr(text));
  if (parsed.success) return parsed.data;
  throw new HoldfastError("invalid_argument", "a text frame that is none of a terminal's", {
    hint: 'text frames are JSON, {"type":"resize",…} or {"type":"ack",…}; what is typed goes in binary frames',
    details: { frame: text.slice(0, 200) },
  });
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
