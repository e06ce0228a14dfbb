import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, TERMINAL_SUBPROTOCOL } from "@holdfast/protocol";
import type { App } from "./app.ts";
import type { TerminalRelay } from "./terminal-relay.ts";

/** A connection that says nothing for this long is closed, unless its request is known to be a long one. */
const IDLE_SECONDS = 30;
/** JSON bodies have a bound of their own; this one is for stdin, which streams and has none. */
const MAX_BODY_BYTES = 2 ** 46;

export interface Listening {
  readonly url: string;
  readonly socketPath: string;
  /** No new connections; calls under way get `graceMs`, then everything is cut. Clients continue from their offsets. */
  close(options: { graceMs: number }): Promise<void>;
}

/** The same API on a TCP port, with the token, and on a unix socket that only its owner can open. */
export function listen(
  app: App,
  options: { host: string; port: number; dataDir: string; isShared: boolean },
): Listening {
  const tcp = serveTcp(app, options);
  // Servers that share a data dir have a socket each.
  const socketPath = join(options.dataDir, options.isShared ? `holdfast-${tcp.port}.sock` : "holdfast.sock");
  rmSync(socketPath, { force: true });
  // A socket is born with the mode that the umask leaves: no moment in which it is open to all.
  const before = process.umask(0o177);
  const local = Bun.serve({ ...handling(app, { trusted: true }), unix: socketPath });
  process.umask(before);
  chmodSync(socketPath, 0o600);
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${tcp.port}`,
    socketPath,
    async close({ graceMs }) {
      const finished = Promise.all([tcp.stop(), local.stop()]);
      await Promise.race([finished, Bun.sleep(graceMs)]);
      await Promise.all([tcp.stop(true), local.stop(true)]);
      rmSync(socketPath, { force: true });
    },
  };
}

function serveTcp(app: App, { host, port }: { host: string; port: number }) {
  try {
    return Bun.serve({
      ...handling(app, { trusted: false }),
      idleTimeout: IDLE_SECONDS,
      hostname: host,
      port,
      // Bun shares the port outside development: two servers would then take turns in answering.
      reusePort: false,
    });
  } catch (cause) {
    throw new HoldfastError("unavailable", `cannot listen on ${host}:${port}: ${(cause as Error).message}`, {
      hint: "is another server running? choose another with --port, or 0 for any",
      cause,
    });
  }
}

function handling(app: App, { trusted }: { trusted: boolean }) {
  return {
    development: false,
    maxRequestBodySize: MAX_BODY_BYTES,
    websocket: relaying,
    fetch(request: Request, server: Bun.Server<TerminalRelay>) {
      return app.fetch(request, {
        trusted,
        mayBeSilent: () => server.timeout(request, 0),
        upgrade: (relay) => upgrade({ request, server, relay }),
      });
    },
  };
}

const relaying: Bun.WebSocketHandler<TerminalRelay> = {
  // A viewer that does not answer pings for this long is gone; its terminal is not.
  idleTimeout: 60,
  sendPings: true,
  open: (socket) => socket.data.opened(socket),
  message: (socket, message) => socket.data.fromViewer(message),
  drain: (socket) => socket.data.drained(),
  close: (socket) => socket.data.closed(),
};

function upgrade(call: {
  request: Request;
  server: Bun.Server<TerminalRelay>;
  relay: TerminalRelay;
}): Response | undefined {
  const { request, server, relay } = call;
  // A client that offers subprotocols and gets none back gives up.
  const offers = request.headers.has("sec-websocket-protocol");
  const headers = offers ? { "Sec-WebSocket-Protocol": TERMINAL_SUBPROTOCOL } : {};
  // Bun has answered by itself; hono wants to see a response all the same.
  return server.upgrade(request, { data: relay, headers }) ? new Response(null) : undefined;
}
