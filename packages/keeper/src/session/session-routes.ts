import { CreateSession, SessionExecRequest, SessionProcessRequest } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import type { Routes } from "../http/guard.ts";
import { startSessionProcess } from "./session-process.ts";
import type { Sessions } from "./sessions.ts";

/** Sessions. Their commands are looked at, followed and cancelled under `/v1/commands`. */
export function sessionRoutes(engine: Engine, sessions: Sessions): Routes {
  return {
    "/v1/sessions": {
      POST: async (call) => {
        const { session, made } = await sessions.create(await call.body(CreateSession));
        return Response.json(session.describe(), { status: made ? 201 : 200 });
      },
      GET: () => Response.json({ sessions: sessions.list().map((session) => session.describe()) }),
    },
    "/v1/sessions/:id": {
      GET: (call) => Response.json(sessions.get(call.param("id")).describe()),
      DELETE: async (call) => {
        await sessions.remove(call.param("id"));
        return new Response(null, { status: 204 });
      },
    },
    "/v1/sessions/:id/exec": {
      POST: async (call) => {
        const request = await call.body(SessionExecRequest);
        return Response.json(await sessions.get(call.param("id")).exec(request));
      },
    },
    "/v1/sessions/:id/processes": {
      POST: async (call) => {
        const request = await call.body(SessionProcessRequest);
        const session = sessions.get(call.param("id"));
        return Response.json(await startSessionProcess(engine, session, request), { status: 201 });
      },
    },
  };
}
