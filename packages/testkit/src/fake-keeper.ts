import type { InstanceRef } from "@holdfast/core";
import { type AdmitRequest, HoldfastError, type KeeperInfo, PROTOCOL_VERSION } from "@holdfast/protocol";

/** Says who it is, takes its admission, and echoes commands. */
export function startFakeKeeper(
  ref: InstanceRef,
  options: { socketPath: string; secret: string },
): Bun.Server<undefined> {
  let fence = 0;
  const refused = (request: Request) => request.headers.get("authorization") !== `Bearer ${options.secret}`;
  return Bun.serve({
    unix: options.socketPath,
    development: false,
    routes: {
      "/v1/keeper": (request) => (refused(request) ? denied() : Response.json(infoOf(ref, fence))),
      "/v1/admit": async (request) => {
        if (refused(request)) return denied();
        fence = ((await request.json()) as AdmitRequest).fence;
        return new Response(null, { status: 204 });
      },
      "/v1/exec": async (request) => {
        if (refused(request)) return denied();
        return Response.json(echo((await request.json()) as { command: string; commandId?: string }));
      },
    },
    fetch: () =>
      Response.json(new HoldfastError("not_found", "the fake keeper cannot do this").toBody(), {
        status: 404,
      }),
  });
}

function denied(): Response {
  return Response.json(new HoldfastError("unauthenticated", "wrong secret").toBody(), { status: 401 });
}

function infoOf(ref: InstanceRef, fence: number): KeeperInfo {
  const { sandboxId, instanceId, generation } = ref;
  return {
    protocolVersion: PROTOCOL_VERSION,
    sandboxId,
    instanceId,
    generation,
    admitted: fence > 0,
    fence,
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
