import { ExecRequest } from "@holdfast/protocol";
import { finishedState, runningState } from "../engine/command-state.ts";
import type { Engine } from "../engine/engine.ts";
import { findRun, logToRead, notFound } from "../engine/lookup.ts";
import type { Routes } from "../http/guard.ts";
import { logResponse } from "../http/log-response.ts";
import { exec } from "./exec.ts";

/** Commands: those of `exec`, and those of sessions, which are looked at and cancelled in the same way. */
export function execRoutes(engine: Engine): Routes {
  const stateOf = (id: string) => {
    const found = findRun(engine, id);
    if (found.record.kind === "process") throw notFound("command", id);
    return found.run === undefined ? finishedState(engine, found.record) : runningState(engine, found.run);
  };
  return {
    "/v1/exec": {
      POST: async (call) => Response.json(await exec(engine, await call.body(ExecRequest))),
    },
    "/v1/commands/:id": {
      GET: (call) => Response.json(stateOf(call.param("id"))),
    },
    "/v1/commands/:id/logs": {
      GET: (call) => logResponse(call, logToRead(engine, { id: call.param("id"), what: "command" })),
    },
    "/v1/commands/:id/cancel": {
      POST: async (call) => {
        await engine.running(call.param("id"))?.cancel();
        return Response.json(stateOf(call.param("id")));
      },
    },
  };
}
