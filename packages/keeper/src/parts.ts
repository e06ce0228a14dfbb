import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "./engine/engine.ts";
import type { Handler, Routes } from "./http/guard.ts";
import type { Gate } from "./lifecycle/gate.ts";
import { Part, routesOf } from "./part.ts";
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
}): Record<string, Handler> {
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

const paths = {
  exec: ["/v1/exec", "/v1/commands/:id", "/v1/commands/:id/logs", "/v1/commands/:id/cancel"],
  process: [
    "/v1/processes",
    "/v1/processes/:id",
    "/v1/processes/:id/logs",
    "/v1/processes/:id/stdin",
    "/v1/processes/:id/stdin/close",
    "/v1/processes/:id/signal",
    "/v1/processes/:id/kill",
    "/v1/processes/:id/wait",
    "/v1/processes/:id/wait-for-port",
  ],
  files: [
    "/v1/files",
    "/v1/files/tar",
    "/v1/files/stat",
    "/v1/files/list",
    "/v1/files/mkdir",
    "/v1/files/move",
    "/v1/files/batch",
    "/v1/files/batch/read",
    "/v1/files/uploads",
    "/v1/files/uploads/:id",
    "/v1/files/uploads/:id/commit",
  ],
  sessions: ["/v1/sessions", "/v1/sessions/:id", "/v1/sessions/:id/exec", "/v1/sessions/:id/processes"],
  terminals: ["/v1/terminals", "/v1/terminals/:id", "/v1/terminals/:id/resize", "/v1/terminals/:id/connect"],
  watch: ["/v1/file-watch"],
  ports: ["/v1/ports", "/v1/ports/:port/connect"],
  git: ["/v1/git/clone", "/v1/git/status", "/v1/git/diff"],
  usage: ["/v1/usage"],
};
