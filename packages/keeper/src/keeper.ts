import { rmSync } from "node:fs";
import type { EndCause, KeeperBoot } from "@holdfast/protocol";
import { Admission } from "./admission.ts";
import { Engine } from "./engine/engine.ts";
import { startReaper } from "./engine/reaper.ts";
import { UseClock } from "./engine/use-clock.ts";
import { errorResponse, guarded, noRoute, type SocketHandler } from "./http/guard.ts";
import { keeperRoutes } from "./keeper-routes.ts";
import { readLastEnd, recordEnd } from "./lifecycle/last-end.ts";
import { Lifecycle } from "./lifecycle/lifecycle.ts";
import { lifecycleRoutes } from "./lifecycle/routes.ts";
import { loadWhatHasLeftovers, makeParts, partRoutes } from "./parts.ts";
import { endEverything } from "./shutdown.ts";
import { realTimers } from "./terminal/timers.ts";

// Files are sent whole, of any size: they stream. What is read into memory at once is the server's to bound.
const MAX_BODY_BYTES = 2 ** 46;
// A silent follow or a long exec is never cut. The runtime takes this for unix sockets, too, and needs it there (10 s is
// its default, and `server.timeout` has no effect), but its types do not know it.
const NEVER_IDLE: object = { idleTimeout: 0 };
const SHUTDOWN_GRACE_MS = 2_000;
// Once all work has ended, its last answers are on their way; who does not take them is not waited for.
const ANSWERS_MS = 500;

export interface Keeper {
  /** Resolves when everything was ended and recorded. */
  readonly over: Promise<void>;
  /** Ends all work, then `over`. May be called twice: the first cause stays. */
  shutdown(options: ShutdownOptions): void;
}

export interface ShutdownOptions {
  readonly cause: EndCause;
  readonly graceMs?: number | undefined;
}

/**
 * Listens on the boot's socket and keeps whatever it is told to run, until it is told to shut down; or until nobody has
 * admitted it in time, its server is gone for good, or it has reached its greatest age.
 */
export async function startKeeper(boot: KeeperBoot, { timers = realTimers } = {}): Promise<Keeper> {
  const engine = new Engine(boot, { use: new UseClock(() => timers.elapsed()) });
  const admission = new Admission(boot, timers);
  const parts = makeParts(engine);
  await loadWhatHasLeftovers(engine, parts);
  const lastEnd = readLastEnd(boot);
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();

  const shutdown = once(async ({ cause, graceMs = SHUTDOWN_GRACE_MS }: ShutdownOptions) => {
    recordEnd(boot, { cause, at: engine.now });
    admission.close();
    await endEverything({ engine, parts, graceMs });
    lifecycle.close();
    parts.fileWatches.loaded?.close();
    await Promise.race([server.stop(), Bun.sleep(ANSWERS_MS)]);
    await server.stop(true);
    reaper.close();
    engine.close();
    removeSocket(boot.socketPath);
    finish();
  });
  const onEnd = (cause: EndCause) => shutdown({ cause });
  const lifecycle = new Lifecycle({ engine, ...parts, admission, timers, onEnd });
  const reaper = startReaper((orphan) => lifecycle.activity.orphanEnded(orphan));
  admission.watch(() => onEnd("not_admitted"));
  const routes = {
    ...keeperRoutes({ engine, admission, lifecycle, startedAt: engine.now, lastEnd, shutdown }),
    ...lifecycleRoutes(lifecycle),
    ...partRoutes({ engine, gate: lifecycle.gate, parts }),
  };
  const { door } = lifecycle;
  const server = listen(boot.socketPath, guarded(routes, { secret: boot.secret, admission, door }));
  return { over, shutdown };
}

function once<T>(work: (argument: T) => Promise<void>): (argument: T) => void {
  let begun = false;
  return (argument) => {
    if (begun) return;
    begun = true;
    void work(argument);
  };
}

type BunRoutes = ReturnType<typeof guarded>;

function listen(socketPath: string, routes: BunRoutes) {
  removeSocket(socketPath); // of an earlier keeper: this one has the instance now
  const umask = process.umask(0o177); // 0600 from the moment the socket exists
  const server = Bun.serve<SocketHandler>({
    ...NEVER_IDLE,
    unix: socketPath,
    routes,
    development: false, // its error page shows source
    maxRequestBodySize: MAX_BODY_BYTES,
    fetch: (request) => errorResponse(noRoute(request)),
    error: errorResponse,
    websocket: {
      // A terminal's frames are small; backpressure is what its handler goes by.
      maxPayloadLength: 1024 * 1024,
      idleTimeout: 0,
      sendPings: false, // a handler that wants to know whether its viewer lives asks itself
      open: (socket) => socket.data.open?.(socket),
      message: (socket, message) => socket.data.message(socket, message),
      drain: (socket) => socket.data.drain?.(socket),
      pong: (socket) => socket.data.pong?.(socket),
      close: (socket, code, reason) => socket.data.close?.(socket, code, reason),
    },
  });
  process.umask(umask);
  return server;
}

/** One with an abstract name has no file, and ends with its listener. */
function removeSocket(socketPath: string): void {
  if (!socketPath.startsWith("\0")) rmSync(socketPath, { force: true });
}
