import type { QuiesceAnswer } from "@holdfast/protocol";
import { ClaimFenceRequest, QuiesceRequest } from "@holdfast/protocol/keeper-start";
import type { Routes } from "../http/guard.ts";
import type { Lifecycle } from "./lifecycle.ts";

/** How the server learns whether the sandbox is in use, and says what is to become of it. */
export function lifecycleRoutes(parts: Lifecycle): Routes {
  const { gate, claims, watches } = parts;
  return {
    "/v1/watch": { GET: () => watches.hold() },
    "/v1/quiesce": { POST: async (call) => Response.json(quiesce(parts, await call.body(QuiesceRequest))) },
    "/v1/resume": {
      POST: () => {
        gate.open();
        return new Response(null, { status: 204 });
      },
    },
    "/v1/activity": { GET: () => Response.json(show(parts)) },
    "/v1/touch": {
      POST: (call) => {
        // It is over before it is answered, so that the answer does not say that it is still going on.
        call.checkClaim();
        gate.enter({ kind: "work", what: "a touch" })();
        return Response.json(show(parts));
      },
    },
    "/v1/claim-fence": {
      POST: async (call) => {
        claims.set(await call.body(ClaimFenceRequest));
        return new Response(null, { status: 204 });
      },
    },
  };
}

/** In one step: what was let in before is seen, and what comes after is refused. */
function quiesce({ activity, gate }: Lifecycle, request: QuiesceRequest): QuiesceAnswer {
  const judgement = activity.judge(request);
  if (judgement.state === "busy") {
    gate.open();
    return judgement;
  }
  gate.close();
  return { state: "quiesced" };
}

function show({ activity, deadman }: Lifecycle) {
  // Nobody gets here before an admission, which always brings a policy.
  return activity.show({ lifetimeMs: (deadman.policy?.lifetimeSeconds ?? 0) * 1000 });
}
