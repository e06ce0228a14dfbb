import type { KeeperLink } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { bodyLimit } from "hono/body-limit";
import { loadAssets } from "./dashboard/assets.ts";
import { dashboardPages } from "./dashboard/pages.ts";
import { Sessions } from "./dashboard/session.ts";
import { signInRoutes } from "./dashboard/sign-in.ts";
import { SignInCodes } from "./dashboard/sign-in-codes.ts";
import { bearerAuth } from "./http/auth.ts";
import { errorResponse, invalidArgument } from "./http/errors.ts";
import { concurrencyLimit } from "./http/limits.ts";
import { observed } from "./http/observed.ts";
import { serveOpenApi } from "./http/openapi-document.ts";
import type { Operation } from "./http/operation.ts";
import { originPolicy } from "./http/origins.ts";
import type { Lifecycle } from "./lifecycle/lifecycle.ts";
import type { Log } from "./log.ts";
import { Meters } from "./observe/meters.ts";
import type { Tracer } from "./observe/trace.ts";
import type { PreviewPlace } from "./previews/preview-name.ts";
import { changeRoutes } from "./routes/changes.ts";
import { claimRoutes } from "./routes/claims.ts";
import { commandRoutes } from "./routes/commands.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileBatchRoutes } from "./routes/file-batch.ts";
import { fileRoutes } from "./routes/files.ts";
import { gitRoutes } from "./routes/git.ts";
import { healthRoutes } from "./routes/health.ts";
import { lifecycleRoutes } from "./routes/lifecycle.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { metricRoutes } from "./routes/metrics.ts";
import { operatorRoutes } from "./routes/operator.ts";
import { pageRoutes } from "./routes/pages.ts";
import { portRoutes } from "./routes/ports.ts";
import { processRoutes } from "./routes/processes.ts";
import { sandboxRoutes } from "./routes/sandboxes.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { snapshotRoutes } from "./routes/snapshots.ts";
import { terminalRoutes } from "./routes/terminals.ts";
import { turnRoutes } from "./routes/turns.ts";
import { uploadRoutes } from "./routes/uploads.ts";
import { usageRoutes } from "./routes/usage.ts";
import { watchRoutes } from "./routes/watch.ts";
import type { TerminalRelay } from "./terminal-relay.ts";

/** The largest JSON body. Bytes of any size go over the routes that stream. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** Each may be a long poll, so many; but bounded, because each holds memory. */
const MAX_REQUESTS = 4096;

/** What the routes need of the lifecycle; its loop is `main.ts`'s to run. */
type AppLifecycle = Pick<
  Lifecycle<KeeperLink>,
  | "sandboxes"
  | "snapshots"
  | "archives"
  | "forks"
  | "changes"
  | "turns"
  | "claims"
  | "ports"
  | "why"
  | "sweep"
  | "inventory"
  | "leases"
  | "providers"
>;

/** What the routes need of the previews' own listener. */
interface PreviewDesk {
  /** The addresses that visitors use. */
  readonly place: PreviewPlace;
  /** Ends the open connections to a port whose address was taken back. */
  cut(revoked: { sandboxId: string; port: number }): void;
}

export interface AppDeps {
  readonly lifecycle: AppLifecycle;
  readonly previews: PreviewDesk;
  readonly token: () => string;
  /** Makes another one and tells it; throws where it is not ours to change. */
  readonly rotateToken: () => string;
  readonly log: Log;
  /** Why the server cannot serve yet, if it cannot. */
  readonly notReady: () => string | undefined;
  readonly maxRequests?: number;
  /** Origins whose pages may call, beside the server's own. */
  readonly allowedOrigins?: readonly string[];
  /** Where what happens is counted; the app's own if the rest of the server counts nothing. */
  readonly meters?: Meters;
  /** Only where traces are asked for. */
  readonly tracer?: Tracer | undefined;
}

export interface AppEnv {
  Bindings: {
    /** The request came over the unix socket. */
    readonly trusted?: boolean;
    /** Tells the listener that this request may be silent for a long time. */
    readonly mayBeSilent?: () => void;
    /** Turns the request into a WebSocket that the relay serves; `undefined` if it did not ask for one. */
    readonly upgrade?: (relay: TerminalRelay) => Response | undefined;
  };
  Variables: { operation: Operation; log: Log };
}

export type App = OpenAPIHono<AppEnv>;

/** The whole API as one function from request to response; needs no socket. */
export function createApp(deps: AppDeps): App {
  const app: App = newApp();
  const { log, tracer, meters = new Meters() } = deps;
  app.use(observed({ app, log, meters, tracer }));
  app.use(originPolicy(deps.allowedOrigins ?? []));
  app.use(concurrencyLimit(deps.maxRequests ?? MAX_REQUESTS));
  app.onError(errorResponse);
  app.notFound((c) => errorResponse(noRoute(c.req.method, c.req.path), c));

  app.route("/", healthRoutes(deps));
  app.route("/", metricRoutes({ ...deps, meters }));
  app.route("/", pageRoutes());
  serveOpenApi(app);

  const sessions = new Sessions(deps);
  app.route("/", dashboardPages(loadAssets()));
  const codes = new SignInCodes();
  app.route("/", signInRoutes({ token: deps.token, sessions, codes }));
  app.use("/v1/*", neverAPage());
  app.use("/v1/*", bearerAuth(deps.token, sessions));
  app.use("/v1/*", refuseUntilReady(deps));
  app.use("/v1/*", jsonBodyLimit());
  app.route("/v1", sandboxRoutes(deps));
  app.route("/v1", lifecycleRoutes(deps));
  app.route("/v1", turnRoutes(deps));
  app.route("/v1", claimRoutes(deps));
  app.route("/v1", eventRoutes(deps));
  app.route("/v1", changeRoutes(deps));
  app.route("/v1", commandRoutes(deps));
  app.route("/v1", processRoutes(deps));
  app.route("/v1", sessionRoutes(deps));
  app.route("/v1", terminalRoutes(deps));
  app.route("/v1", watchRoutes(deps));
  app.route("/v1", gitRoutes(deps));
  app.route("/v1", fileRoutes(deps));
  app.route("/v1", fileBatchRoutes(deps));
  app.route("/v1", uploadRoutes(deps));
  app.route("/v1", portRoutes(deps));
  app.route("/v1", usageRoutes(deps));
  app.route("/v1", snapshotRoutes(deps));
  app.route("/v1", operatorRoutes({ ...deps, signInCode: () => codes.make() }));

  app.use("/mcp", bearerAuth(deps.token), refuseUntilReady(deps));
  app.route(
    "/",
    mcpRoutes(() => app),
  );
  return app;
}

/** A part of the API; what its schemas refuse becomes `invalid_argument`. */
export function newApp(): App {
  return new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidArgument(result.error);
    },
  });
}

/**
 * The same route, whose handler checks what it is given: `asked.ts` the headers, `bodyOf` the body. For the routes that
 * are called most, because the framework's own checks take a fifth of the server's time for such a call.
 */
export function checkedByHandler<Route extends RouteConfig>(app: App, route: Route): Omit<Route, "request"> {
  app.openAPIRegistry.registerPath(route);
  const { request: _, ...rest } = route;
  return { ...rest, hide: true };
}

/** A sandbox's files and logs come from the dashboard's own address: whatever they are, a browser makes no page of them. */
function neverAPage(): Parameters<App["use"]>[1] {
  return (c, next) => {
    c.header("Content-Security-Policy", "default-src 'none'; sandbox");
    c.header("X-Content-Type-Options", "nosniff");
    return next();
  };
}

function refuseUntilReady({ notReady }: AppDeps): Parameters<App["use"]>[1] {
  return (_c, next) => {
    const reason = notReady();
    if (reason !== undefined)
      throw new HoldfastError("unavailable", reason, { hint: "try again in a moment" });
    return next();
  };
}

/** A process's stdin, files and archives, and nothing that only ends like it: a sandbox may be called "stdin". */
const STREAMING =
  /^\/v1\/(?:sandboxes\/[^/]+\/(?:processes\/[^/]+\/stdin|files|files\/.+)|snapshots\/import)$/;

function jsonBodyLimit(): Parameters<App["use"]>[1] {
  const limit = bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: () => {
      throw new HoldfastError("too_large", `a JSON body may have at most ${MAX_BODY_BYTES} bytes`, {
        hint: "send large input as a file or through a process's stdin, which stream",
        started: "no",
      });
    },
  });
  return (c, next) => (STREAMING.test(c.req.path) ? next() : limit(c, next));
}

function noRoute(method: string, path: string): HoldfastError {
  return new HoldfastError("not_found", `there is no route ${method} ${path}`, {
    hint: "the routes are listed at /openapi.json",
  });
}
