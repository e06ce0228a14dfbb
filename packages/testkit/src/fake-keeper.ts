import type { InstanceRef } from "@holdfast/core";
import {
  AdmitRequest,
  ClaimFenceRequest,
  FENCE_HEADER,
  HoldfastError,
  type KeeperInfo,
  PROTOCOL_VERSION,
  type QuiesceAnswer,
  type SandboxActivity,
} from "@holdfast/protocol";

/** What a test may set, and what it may look at. */
export interface FakeKeeperState {
  /** What holds the sandbox awake. Empty: it is idle, for as long as `idleForMs` says. */
  heldAwakeBy: string[];
  idleForMs: number;
  /** The last admission, with the policy that came along. */
  admitted: AdmitRequest | undefined;
  /** It was admitted for somebody. */
  isOwned: boolean;
  claim: ClaimFenceRequest | undefined;
  quiesced: boolean;
  /** How many connections are held to see its end. */
  watches: number;
  touches: number;
}

export interface FakeKeeper {
  readonly state: FakeKeeperState;
  /** Answers nobody until it is let go on. */
  freeze(): void;
  thaw(): void;
  /** Ends at once, with all its connections. */
  close(): void;
}

/** A watch is silent for as long as it is held. The runtime's types do not have it together with a unix socket. */
const NEVER_IDLE: object = { idleTimeout: 0 };

type Route = (request: Request) => Response | Promise<Response>;

/** Says who it is, takes its admission, judges its idleness as it was told, and echoes commands. */
export function startFakeKeeper(
  ref: InstanceRef,
  options: { socketPath: string; secret: string },
): FakeKeeper {
  const state: FakeKeeperState = {
    ...{ heldAwakeBy: [], idleForMs: 0, admitted: undefined, claim: undefined },
    ...{ isOwned: false, quiesced: false, watches: 0, touches: 0 },
  };
  let frozen: PromiseWithResolvers<void> | undefined;
  const guarded = (route: Route): Route => {
    return async (request) => {
      await frozen?.promise;
      return refusalOf(request, state, options.secret) ?? route(request);
    };
  };
  const routes = Object.entries(routesOf(ref, state)).map(([path, route]) => [path, guarded(route)] as const);
  const server = Bun.serve({
    unix: options.socketPath,
    development: false,
    ...NEVER_IDLE,
    routes: Object.fromEntries(routes),
    fetch: async () => {
      await frozen?.promise;
      return refused(new HoldfastError("not_found", "the fake keeper cannot do this"));
    },
  });
  return {
    state,
    freeze() {
      frozen ??= Promise.withResolvers();
    },
    thaw() {
      frozen?.resolve();
      frozen = undefined;
    },
    close: () => void server.stop(true),
  };
}

function routesOf(ref: InstanceRef, state: FakeKeeperState): Record<string, Route> {
  return {
    "/v1/keeper": () => Response.json(infoOf(ref, state)),
    "/v1/admit": async (request) => {
      state.admitted = AdmitRequest.parse(await request.json());
      state.isOwned ||= !state.admitted.spare;
      return Response.json(infoOf(ref, state));
    },
    "/v1/watch": () => new Response(heldBy(state)),
    "/v1/quiesce": async (request) => {
      const answer = quiesce(state, ((await request.json()) as { lifetimeMs: number }).lifetimeMs);
      state.quiesced = answer.state === "quiesced";
      return Response.json(answer);
    },
    "/v1/resume": () => {
      state.quiesced = false;
      return nothing();
    },
    "/v1/activity": () => Response.json(activityOf(state)),
    "/v1/touch": () => {
      state.touches += 1;
      state.idleForMs = 0;
      return Response.json(activityOf(state));
    },
    "/v1/claim-fence": async (request) => {
      state.claim = ClaimFenceRequest.parse(await request.json());
      return nothing();
    },
    "/v1/exec": async (request) => {
      if (state.quiesced) return refused(new HoldfastError("quiesced", "it is about to be stopped"));
      return Response.json(echo((await request.json()) as { command: string; commandId?: string }));
    },
  };
}

/** Strangers, and servers that were replaced. */
function refusalOf(request: Request, { admitted }: FakeKeeperState, secret: string): Response | undefined {
  if (request.headers.get("authorization") !== `Bearer ${secret}`)
    return refused(new HoldfastError("unauthenticated", "wrong secret"));
  const fence = request.headers.get(FENCE_HEADER);
  const isStale = fence !== null && admitted !== undefined && Number(fence) < admitted.fence;
  return isStale ? refused(new HoldfastError("fence_stale", "a newer server was here")) : undefined;
}

function refused(error: HoldfastError): Response {
  return Response.json(error.toBody(), { status: error.status });
}

function nothing(): Response {
  return new Response(null, { status: 204 });
}

function heldBy(state: FakeKeeperState): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (to) => {
      state.watches += 1;
      to.enqueue(Buffer.from("\n"));
    },
    cancel: () => {
      state.watches -= 1;
    },
  });
}

function quiesce({ heldAwakeBy, idleForMs }: FakeKeeperState, lifetimeMs: number): QuiesceAnswer {
  if (heldAwakeBy.length > 0) return { state: "busy", because: heldAwakeBy, idleForMs: 0 };
  if (idleForMs < lifetimeMs) return { state: "busy", because: ["it was used not long ago"], idleForMs };
  return { state: "quiesced" };
}

function activityOf({ heldAwakeBy, idleForMs }: FakeKeeperState): SandboxActivity {
  return { heldAwakeBy, idleForMs: heldAwakeBy.length > 0 ? 0 : idleForMs };
}

function infoOf(
  { sandboxId, instanceId, generation }: InstanceRef,
  { admitted, isOwned }: FakeKeeperState,
): KeeperInfo {
  return {
    protocolVersion: PROTOCOL_VERSION,
    sandboxId,
    instanceId,
    generation,
    admitted: admitted !== undefined,
    fence: admitted?.fence ?? 0,
    isOwned,
    shell: "sh",
    startedAt: new Date(0).toISOString(),
    commandsRunning: 0,
    processesRunning: 0,
  };
}

function echo({ command, commandId = "c1" }: { command: string; commandId?: string }): unknown {
  return {
    commandId,
    status: "exited",
    shell: "sh",
    exitCode: 0,
    signal: null,
    timedOut: false,
    cancelled: false,
    oomKilled: false,
    durationMs: 0,
    stdout: command,
    stderr: "",
    truncated: { stdoutBytes: 0, stderrBytes: 0 },
    log: { firstOffset: 0, nextOffset: command.length },
  };
}
