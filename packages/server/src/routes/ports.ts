import { type ExposedPort, type Holding, stateOf } from "@holdfast/core";
import { ExposePort, Port, PortList, type SandboxPort } from "@holdfast/protocol";
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { type App, type AppDeps, newApp } from "../app.ts";
import { askedBy, holdHeaders } from "../http/asked.ts";
import { iso, withGeneration } from "../http/describe.ts";
import { answer, byId, jsonBody, refusals } from "./shared.ts";

const byPort = byId.extend({ port: z.coerce.number().int().min(1).max(65_535) });

const expose = createRoute({
  operationId: "exposePort",
  method: "post",
  path: "/sandboxes/{id}/ports",
  summary: "Give a port of the sandbox an address outside; said again, the address stays",
  request: { params: byId, headers: holdHeaders, ...jsonBody(ExposePort) },
  responses: {
    200: answer("it was exposed already", Port),
    201: answer("it is exposed now", Port),
    ...refusals,
  },
});

const list = createRoute({
  operationId: "listPorts",
  method: "get",
  path: "/sandboxes/{id}/ports",
  summary: "The ports that are exposed, and those that something inside listens on",
  request: { params: byId },
  responses: { 200: answer("in order", PortList), ...refusals },
});

const close = createRoute({
  operationId: "closePort",
  method: "delete",
  path: "/sandboxes/{id}/ports/{port}",
  summary: "Take a port's address back; its open connections are cut",
  request: { params: byPort, headers: holdHeaders },
  responses: { 204: { description: "it has no address" }, ...refusals },
});

export function portRoutes({ lifecycle: { ports, sandboxes }, previews }: AppDeps): App {
  const app = newApp();
  const shown = (sandboxId: string, exposed: ExposedPort): Port => ({
    port: exposed.port,
    url: previews.place.urlOf(sandboxId, exposed),
    ...cookieUrl(sandboxId, exposed),
    createdAt: iso(exposed.createdAt),
    wake: exposed.wake,
    public: exposed.token === null,
  });

  function cookieUrl(sandboxId: string, { port, token }: ExposedPort): Pick<Port, "cookieUrl"> {
    if (token === null) return {};
    return { cookieUrl: previews.place.cookieUrlOf(sandboxId, { port, token }) };
  }

  app.openapi(expose, async (c) => {
    const { id } = c.req.valid("param");
    const { holding, exposed, outcome } = await ports.expose(id, c.req.valid("json"), askedBy(c));
    if (outcome === "replaced") previews.cut({ sandboxId: holding.sandboxId, port: exposed.port });
    withGeneration(c, holding);
    return c.json(shown(holding.sandboxId, exposed), outcome === "created" ? 201 : 200);
  });

  app.openapi(list, async (c) => {
    const holding = await sandboxes.get(c.req.valid("param").id);
    withGeneration(c, holding);
    const exposed = holding.sandbox.ports.map((one) => shown(holding.sandboxId, one));
    return c.json({ ports: merged(exposed, await listening(holding)) }, 200);
  });

  app.openapi(close, async (c) => {
    const { id, port } = c.req.valid("param");
    const holding = await ports.close(id, port, askedBy(c));
    previews.cut({ sandboxId: holding.sandboxId, port });
    withGeneration(c, holding);
    return c.body(null, 204);
  });

  /** A look: in one that does not run, nothing listens. */
  async function listening(holding: Holding): Promise<number[]> {
    if (stateOf(holding) !== "running") return [];
    return (await sandboxes.look(holding.sandboxId)).link.listeningPorts();
  }

  return app;
}

function merged(exposed: readonly Port[], listening: readonly number[]): SandboxPort[] {
  const known = new Map<number, SandboxPort>(listening.map((port) => [port, { port, listening: true }]));
  for (const one of exposed) known.set(one.port, { ...one, listening: known.has(one.port) });
  return [...known.values()].sort((a, b) => a.port - b.port);
}
