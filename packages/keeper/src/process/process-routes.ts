import { DurationMs, lazily, ProcessRequest, SignalRequest } from "@holdfast/protocol";
import { z } from "zod";
import type { Engine } from "../engine/engine.ts";
import { logToRead } from "../engine/lookup.ts";
import type { StdinWriter } from "../engine/stdin.ts";
import type { Call, Routes } from "../http/guard.ts";
import { logResponse } from "../http/log-response.ts";
import {
  getProcess,
  killProcess,
  listProcesses,
  signalProcess,
  startProcess,
  stdinOf,
  waitForProcess,
} from "./process.ts";
import { waitForPort } from "./wait-for-port.ts";

const TimeoutMs = lazily(() => z.coerce.number().pipe(DurationMs));
const ListQuery = lazily(() => z.strictObject({ sessionId: z.string().optional() }));
const WaitQuery = lazily(() => z.strictObject({ timeoutMs: TimeoutMs.optional() }));
const PortQuery = lazily(() =>
  z.strictObject({
    port: z.coerce.number().int().min(1).max(65535),
    timeoutMs: TimeoutMs.default(60_000), // the slowest dev servers take about this long
  }),
);

export function processRoutes(engine: Engine): Routes {
  return {
    "/v1/processes": {
      POST: async (call) =>
        Response.json(startProcess(engine, await call.body(ProcessRequest)), { status: 201 }),
      GET: (call) => Response.json({ processes: listProcesses(engine, call.query(ListQuery)) }),
    },
    "/v1/processes/:id": {
      GET: (call) => Response.json(getProcess(engine, call.param("id"))),
    },
    "/v1/processes/:id/logs": {
      GET: (call) => logResponse(call, logToRead(engine, { id: call.param("id"), what: "process" })),
    },
    "/v1/processes/:id/stdin": {
      POST: async (call) => {
        await writeBody(stdinOf(engine, call.param("id")), call);
        return new Response(null, { status: 204 });
      },
    },
    "/v1/processes/:id/stdin/close": {
      POST: async (call) => {
        await stdinOf(engine, call.param("id")).close();
        return new Response(null, { status: 204 });
      },
    },
    "/v1/processes/:id/signal": {
      POST: async (call) =>
        Response.json(signalProcess(engine, call.param("id"), await call.body(SignalRequest))),
    },
    "/v1/processes/:id/kill": {
      POST: async (call) => Response.json(await killProcess(engine, call.param("id"))),
    },
    "/v1/processes/:id/wait": {
      GET: async (call) =>
        Response.json(await waitForProcess(engine, { id: call.param("id"), ...call.query(WaitQuery) })),
    },
    "/v1/processes/:id/wait-for-port": {
      GET: async (call) => {
        const { signal } = call.request;
        return Response.json(
          await waitForPort(engine, { id: call.param("id"), ...call.query(PortQuery), signal }),
        );
      },
    },
  };
}

// A body of a stated length up to this arrives in one piece between those of other writers; a longer or endless one
// is passed on as it comes, so that it neither fills memory nor keeps the others waiting.
const WHOLE_BODY_BYTES = 1024 * 1024;

async function writeBody(stdin: StdinWriter, { request, checkClaim }: Call): Promise<void> {
  const length = Number(request.headers.get("Content-Length") ?? Number.NaN);
  if (length <= WHOLE_BODY_BYTES) return stdin.write(await request.bytes());
  for await (const chunk of request.body ?? []) {
    checkClaim(); // an endless body must not outlive the claim that it came with
    await stdin.write(chunk);
  }
}
