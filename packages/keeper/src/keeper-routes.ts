import type { KeeperInfo, LastEnd } from "@holdfast/protocol";
import { AdmitRequest } from "@holdfast/protocol/keeper-start";
import { atLeast, integer, optional, shape, strictObject, which } from "@holdfast/protocol/plain-check";
import { PROTOCOL_VERSION } from "@holdfast/protocol/version";
import type { Admission } from "./admission.ts";
import type { Engine } from "./engine/engine.ts";
import type { Routes } from "./http/guard.ts";
import type { ShutdownOptions } from "./keeper.ts";
import type { Lifecycle } from "./lifecycle/lifecycle.ts";

const durationMs = which(atLeast(0, integer), (ms) => ms < 2 ** 31, "at most 24 days");
const ShutdownRequest = shape(strictObject({ graceMs: optional(durationMs) }));

export interface KeeperParts {
  readonly engine: Engine;
  readonly admission: Admission;
  readonly startedAt: number;
  readonly lifecycle: Lifecycle;
  /** Of an earlier instance. */
  readonly lastEnd: LastEnd | undefined;
  readonly shutdown: (options: ShutdownOptions) => void;
}

/** What the server says to the keeper itself. */
export function keeperRoutes(parts: KeeperParts): Routes {
  return {
    "/v1/keeper": { GET: () => Response.json(infoOf(parts)) },
    "/v1/admit": {
      POST: async (call) => {
        const request = await call.body(AdmitRequest);
        const { admission, lifecycle, engine } = parts;
        const isGivenAway = admission.admitted && !admission.isOwned && !request.spare;
        admission.admit(request);
        lifecycle.deadman.admitted(request);
        engine.addEnvironment(request.env);
        // For its owner its time begins now.
        if (isGivenAway) engine.use.note("the sandbox was created");
        return Response.json(infoOf(parts));
      },
    },
    "/v1/shutdown": {
      POST: async (call) => {
        parts.shutdown({ cause: "told", ...(await call.body(ShutdownRequest)) });
        return Response.json(infoOf(parts), { status: 202 });
      },
    },
  };
}

function infoOf({ engine, admission, lifecycle, startedAt, lastEnd }: KeeperParts): KeeperInfo {
  const kinds = [...engine.runs()].map(({ record }) => record.kind);
  const processesRunning = kinds.filter((kind) => kind === "process").length;
  const { sandboxId, instanceId, generation } = engine.boot;
  return {
    protocolVersion: PROTOCOL_VERSION,
    sandboxId,
    instanceId,
    generation,
    admitted: admission.admitted,
    fence: admission.fence,
    claimFence: lifecycle.claims.fence,
    isOwned: admission.isOwned,
    shell: engine.shell?.name ?? "none",
    startedAt: new Date(startedAt).toISOString(),
    commandsRunning: kinds.length - processesRunning,
    processesRunning,
    ...(lastEnd !== undefined && { lastEnd }),
  };
}
