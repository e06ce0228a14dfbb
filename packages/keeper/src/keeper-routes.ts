import { AdmitRequest, DurationMs, type KeeperInfo, PROTOCOL_VERSION } from "@holdfast/protocol";
import { z } from "zod";
import type { Admission } from "./admission.ts";
import type { Engine } from "./engine/engine.ts";
import type { Routes } from "./http/guard.ts";

const ShutdownRequest = z.strictObject({ graceMs: DurationMs.optional() });

export interface KeeperParts {
  readonly engine: Engine;
  readonly admission: Admission;
  readonly startedAt: number;
  readonly shutdown: (options: { graceMs?: number | undefined }) => void;
}

/** What the server says to the keeper itself. */
export function keeperRoutes(parts: KeeperParts): Routes {
  return {
    "/v1/keeper": { GET: () => Response.json(infoOf(parts)) },
    "/v1/admit": {
      POST: async (call) => {
        parts.admission.admit(await call.body(AdmitRequest));
        return Response.json(infoOf(parts));
      },
    },
    "/v1/shutdown": {
      POST: async (call) => {
        parts.shutdown(await call.body(ShutdownRequest));
        return Response.json(infoOf(parts), { status: 202 });
      },
    },
  };
}

function infoOf({ engine, admission, startedAt }: KeeperParts): KeeperInfo {
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
    shell: engine.shell?.name ?? "none",
    startedAt: new Date(startedAt).toISOString(),
    commandsRunning: kinds.length - processesRunning,
    processesRunning,
  };
}
