import {
  HoldfastError,
  TERMINAL_SUBPROTOCOL,
  TerminalConnectQuery,
  TerminalRequest,
  TerminalSize,
} from "@holdfast/protocol";
import type { z } from "zod";
import type { TerminalSocketData } from "./socket.ts";
import type { Terminals } from "./terminals.ts";

type Server = Bun.Server<TerminalSocketData>;

/** The terminals' part of the keeper's API. */
export function terminalRoutes(terminals: Terminals) {
  return {
    "/v1/terminals": {
      GET: () => Response.json({ terminals: terminals.list() }),
      POST: async (request: Request) => {
        const answer = await terminals.getOrCreate(await readBody(request, TerminalRequest));
        return Response.json(answer, { status: answer.created ? 201 : 200 });
      },
    },
    "/v1/terminals/:id": {
      GET: (request: Bun.BunRequest<"/v1/terminals/:id">) =>
        Response.json(terminals.get(request.params.id).facts()),
      DELETE: async (request: Bun.BunRequest<"/v1/terminals/:id">) =>
        Response.json(await terminals.destroy(request.params.id)),
    },
    "/v1/terminals/:id/resize": {
      POST: async (request: Bun.BunRequest<"/v1/terminals/:id/resize">) => {
        const terminal = terminals.get(request.params.id);
        terminal.resize(await readBody(request, TerminalSize));
        return Response.json(terminal.facts());
      },
    },
    "/v1/terminals/:id/connect": {
      GET: (request: Bun.BunRequest<"/v1/terminals/:id/connect">, server: Server) =>
        connect({ request, server, terminals, terminalId: request.params.id }),
    },
  };
}

function connect(call: {
  request: Request;
  server: Server;
  terminals: Terminals;
  terminalId: string;
}): Response | undefined {
  const { request, server, terminals, terminalId } = call;
  const search = new URL(request.url).searchParams;
  const query = check(TerminalConnectQuery, Object.fromEntries(search));
  const data: TerminalSocketData = { surface: "terminal", terminals, terminalId, query };
  // A client that offers subprotocols and gets none back gives up.
  const offers = request.headers.has("Sec-WebSocket-Protocol");
  const headers = offers ? { "Sec-WebSocket-Protocol": TERMINAL_SUBPROTOCOL } : {};
  if (server.upgrade(request, { data, headers })) return undefined;
  throw new HoldfastError("invalid_argument", "a terminal is connected to by WebSocket", {
    hint: "open this address as a WebSocket, or use the SDK's `sandbox.terminal()`",
  });
}

async function readBody<T>(request: Request, shape: z.ZodType<T>): Promise<T> {
  const text = await request.text();
  try {
    return check(shape, text === "" ? {} : JSON.parse(text));
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause;
    throw new HoldfastError("invalid_argument", "the body is not JSON", { cause });
  }
}

function check<T>(shape: z.ZodType<T>, value: unknown): T {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  throw new HoldfastError("invalid_argument", issues.map((i) => `${i.path}: ${i.message}`).join("; "), {
    details: { issues },
  });
}
