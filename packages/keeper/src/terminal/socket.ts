import {
  type FromViewer,
  FromViewerFrame,
  HoldfastError,
  type TerminalConnectQuery,
  type ToViewer,
  terminalCloseCode,
} from "@holdfast/protocol";
import type { Terminal } from "./terminal.ts";
import type { Terminals } from "./terminals.ts";
import type { Viewer } from "./viewer.ts";

/** What a socket carries from its upgrade on. */
export interface TerminalSocketData {
  readonly surface: "terminal";
  readonly terminals: Terminals;
  readonly terminalId: string;
  readonly query: TerminalConnectQuery;
  attached?: { readonly terminal: Terminal; readonly viewer: Viewer };
}

type Socket = Bun.ServerWebSocket<TerminalSocketData>;

/**
 * A viewer's socket. What is wrong with the request is said in an `error` frame and not in the answer to the upgrade,
 * because a page gets to see only the former.
 */
export const terminalSocket = {
  open(ws: Socket): void {
    const { terminals, terminalId, query } = ws.data;
    orRefuse(ws, () => {
      const terminal = terminals.get(terminalId);
      ws.data.attached = { terminal, viewer: terminal.attach(ws, query) };
    });
  },

  message(ws: Socket, message: string | Uint8Array): void {
    const { terminal, viewer } = ws.data.attached ?? {};
    if (terminal === undefined || viewer === undefined) return;
    viewer.heard();
    orRefuse(ws, () => {
      if (typeof message !== "string") return terminal.input(viewer, message);
      const frame = parseFrame(message);
      if (frame.type === "resize") terminal.resizeBy(viewer, { cols: frame.cols, rows: frame.rows });
      else terminal.ack(viewer, frame.offset);
    });
  },

  drain(ws: Socket): void {
    const { terminal, viewer } = ws.data.attached ?? {};
    if (viewer !== undefined) terminal?.flowed(viewer);
  },

  pong(ws: Socket): void {
    ws.data.attached?.viewer.pong();
  },

  close(ws: Socket): void {
    const { terminal, viewer } = ws.data.attached ?? {};
    if (viewer !== undefined) terminal?.detach(viewer);
  },
};

/** A mistake that leaves the viewer attached is told; anything else ends the connection. */
function orRefuse(ws: Socket, action: () => void): void {
  try {
    action();
  } catch (error) {
    const told = error instanceof HoldfastError ? error : new HoldfastError("internal", String(error));
    ws.sendText(JSON.stringify({ type: "error", ...told.toBody() } satisfies ToViewer));
    if (told.code !== "forbidden" && told.code !== "wrong_state") {
      ws.close(terminalCloseCode.refused, told.code);
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
