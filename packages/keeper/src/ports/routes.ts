import { HoldfastError, type ListeningPorts } from "@holdfast/protocol";
import type { UseClock } from "../engine/use-clock.ts";
import type { Routes } from "../http/guard.ts";
import type { Gate } from "../lifecycle/gate.ts";
import { listeningPorts } from "./listening.ts";
import { PortRelay } from "./port-relay.ts";

/** The way to programs that listen in here. */
export function portRoutes(parts: { gate: Gate; use: UseClock }): Routes {
  return {
    "/v1/ports": { GET: () => Response.json({ ports: listeningPorts() } satisfies ListeningPorts) },
    "/v1/ports/:port/connect": {
      GET: (call) => {
        const port = Number(call.param("port"));
        if (!Number.isInteger(port) || port < 1 || port > 65_535) throw notAPort(call.param("port"));
        if (call.server.upgrade(call.request, { data: new PortRelay({ ...parts, port }) })) return undefined;
        throw new HoldfastError("invalid_argument", "a port is connected to by WebSocket", { started: "no" });
      },
    },
  };
}

function notAPort(text: string): HoldfastError {
  return new HoldfastError("invalid_argument", `there is no port "${text.slice(0, 20)}"`, { started: "no" });
}
