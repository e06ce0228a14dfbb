import {
  HoldfastError,
  TERMINAL_SUBPROTOCOL,
  TerminalConnectQuery,
  TerminalRequest,
  TerminalSize,
} from "@holdfast/protocol";
import type { Call, Routes } from "../http/guard.ts";
import { TerminalSocket } from "./socket.ts";
import type { Terminals } from "./terminals.ts";

/** The terminals' part of the keeper's API. */
export function terminalRoutes(terminals: Terminals): Routes {
  return {
    "/v1/terminals": {
      GET: () => Response.json({ terminals: terminals.list() }),
      POST: async (call) => {
        const answer = await terminals.getOrCreate(await call.body(TerminalRequest));
        return Response.json(answer, { status: answer.created ? 201 : 200 });
      },
    },
    "/v1/terminals/:id": {
      GET: (call) => Response.json(terminals.get(call.param("id")).facts()),
      DELETE: async (call) => Response.json(await terminals.destroy(call.param("id"))),
    },
    "/v1/terminals/:id/resize": {
      POST: async (call) => {
        const terminal = terminals.get(call.param("id"));
        terminal.resize(await call.body(TerminalSize));
        return Response.json(terminal.facts());
      },
    },
    "/v1/terminals/:id/connect": { GET: (call) => connect(call, terminals) },
  };
}

function connect(call: Call, terminals: Terminals): undefined {
  const data = new TerminalSocket({
    terminals,
    terminalId: call.param("id"),
    query: call.query(TerminalConnectQuery),
    checkClaim: call.checkClaim,
  });
  // A client that offers subprotocols and gets none back gives up.
  const offers = call.request.headers.has("Sec-WebSocket-Protocol");
  const headers = offers ? { "Sec-WebSocket-Protocol": TERMINAL_SUBPROTOCOL } : {};
  if (call.server.upgrade(call.request, { data, headers })) return;
  throw new HoldfastError("invalid_argument", "a terminal is connected to by WebSocket", {
    hint: "open this address as a WebSocket, or use the SDK's `sandbox.terminal()`",
  });
}
