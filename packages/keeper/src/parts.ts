import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "./engine/engine.ts";
import type { Routes } from "./http/guard.ts";
import type { Gate } from "./lifecycle/gate.ts";
import { Part, type Paths, routesOf } from "./part.ts";
import type { Sessions } from "./session/sessions.ts";
import type { Terminals } from "./terminal/terminals.ts";
import type { FileWatches } from "./watch/file-watches.ts";

/** What a sandbox may have, beside commands and processes, that is looked at as a whole. */
export interface Parts {
  readonly sessions: Part<Sessions>;
  readonly terminals: Part<Terminals>;
  readonly fileWatches: Part<FileWatches>;
  readonly files: Part<Routes>;
  readonly git: Part<Routes>;
}

export function makeParts(engine: Engine): Parts {
  const sessions = new Part(async () => {
    const { Sessions } = await import("./session/sessions.ts");
    return new Sessions(engine);
  });
  const terminals = new Part(async () => {
    const { Terminals } = await import("./terminal/terminals.ts");
    return new Terminals(engine);
  });
  const fileWatches = new Part(async () => {
    const { FileWatches } = await import("./watch/file-watches.ts");
    return new FileWatches();
  });
  const files = new Part(async () => {
    const { allFilesRoutes } = await import("./files/routes.ts");
    return allFilesRoutes(engine);
  });
  const git = new Part(async () => {
    const { gitRoutes } = await import("./git/routes.ts");
    return gitRoutes(engine);
  });
  return { sessions, terminals, fileWatches, files, git };
}

/** An earlier keeper may have left sessions, and what it had not finished: each part sees to its own when it is loaded. */
export async function loadWhatHasLeftovers({ boot }: Engine, { sessions, files, git }: Parts): Promise<void> {
  const left = Object.entries({ sessions, files, clones: git }).filter(([dir]) =>
    existsSync(join(boot.stateDir, dir)),
  );
  await Promise.all(left.map(([, part]) => part.get()));
}

/** What the parts answer to, loaded or not. */
export function partRoutes({
  engine,
  gate,
  parts: { sessions, terminals, fileWatches, files, git },
}: {
  engine: Engine;
  gate: Gate;
  parts: Parts;
}): Routes {
  const exec = new Part(async () => {
    const { execRoutes } = await import("./exec/exec-routes.ts");
    return execRoutes(engine);
  });
  const process = new Part(async () => {
    const { processRoutes } = await import("./process/process-routes.ts");
    return processRoutes(engine);
  });
  const session = new Part(async () => {
    const { sessionRoutes } = await import("./session/session-routes.ts");
    return sessionRoutes(engine, await sessions.get());
  });
  const terminal = new Part(async () => {
    const { terminalRoutes } = await import("./terminal/routes.ts");
    return terminalRoutes(await terminals.get());
  });
  const watch = new Part(async () => {
    const { watchRoutes } = await import("./watch/routes.ts");
    return watchRoutes(await fileWatches.get());
  });
  const ports = new Part(async () => {
    const { portRoutes } = await import("./ports/routes.ts");
    return portRoutes({ gate, use: engine.use });
  });
  const usage = new Part(async () => {
    const { usageRoutes } = await import("./usage/routes.ts");
    return usageRoutes({ engine, sessions, terminals });
  });
  return {
    ...routesOf(paths.exec, exec),
    ...routesOf(paths.process, process),
    ...routesOf(paths.files, files),
    ...routesOf(paths.sessions, session),
    ...routesOf(paths.terminals, terminal),
    ...routesOf(paths.watch, watch),
    ...routesOf(paths.ports, ports),
    ...routesOf(paths.git, git),
    ...routesOf(paths.usage, usage),
  };
}

// Methods are named, too: a path that answers to all of them is 7 KiB of the runtime's router.
const paths = {
  exec: {
    "/v1/exec": ["POST"],
    "/v1/commands/:id": ["GET"],
    "/v1/commands/:id/logs": ["GET"],
    "/v1/commands/:id/cancel": ["POST"],
  },
  process: {
    "/v1/processes": ["GET", "POST"],
    "/v1/processes/:id": ["GET"],
    "/v1/processes/:id/logs": ["GET"],
    "/v1/processes/:id/stdin": ["POST"],
    "/v1/processes/:id/stdin/close": ["POST"],
    "/v1/processes/:id/signal": ["POST"],
    "/v1/processes/:id/kill": ["POST"],
    "/v1/processes/:id/wait": ["GET"],
    "/v1/processes/:id/wait-for-port": ["GET"],
  },
  files: {
    "/v1/files": ["GET", "PUT", "DELETE"],
    "/v1/files/tar": ["GET", "PUT"],
    "/v1/files/stat": ["GET"],
    "/v1/files/list": ["GET"],
    "/v1/files/mkdir": ["POST"],
    "/v1/files/move": ["POST"],
    "/v1/files/batch": ["POST"],
    "/v1/files/batch/read": ["POST"],
    "/v1/files/uploads": ["POST"],
    "/v1/files/uploads/:id": ["GET", "PUT", "DELETE"],
    "/v1/files/uploads/:id/commit": ["POST"],
  },
  sessions: {
    "/v1/sessions": ["GET", "POST"],
    "/v1/sessions/:id": ["GET", "DELETE"],
    "/v1/sessions/:id/exec": ["POST"],
    "/v1/sessions/:id/processes": ["POST"],
  },
  terminals: {
    "/v1/terminals": ["GET", "POST"],
    "/v1/terminals/:id": ["GET", "DELETE"],
    "/v1/terminals/:id/resize": ["POST"],
    "/v1/terminals/:id/connect": ["GET"],
  },
  watch: { "/v1/file-watch": ["GET"] },
  ports: { "/v1/ports": ["GET"], "/v1/ports/:port/connect": ["GET"] },
  git: { "/v1/git/clone": ["POST"], "/v1/git/status": ["GET"], "/v1/git/diff": ["GET"] },
  usage: { "/v1/usage": ["GET"] },
} satisfies Record<string, Paths>;
