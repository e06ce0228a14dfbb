import { CloneRequest, DiffQuery, StatusQuery } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import type { Routes } from "../http/guard.ts";
import { Clones } from "./clone.ts";
import { gitDiff } from "./diff.ts";
import { gitStatus } from "./status.ts";

export function gitRoutes(engine: Engine): Routes {
  const clones = new Clones(engine);
  return {
    "/v1/git/clone": {
      POST: async (call) => Response.json(await clones.clone(await call.body(CloneRequest))),
    },
    "/v1/git/status": {
      GET: async (call) => Response.json(await gitStatus(engine, call.query(StatusQuery))),
    },
    "/v1/git/diff": { GET: async (call) => Response.json(await gitDiff(engine, call.query(DiffQuery))) },
  };
}
