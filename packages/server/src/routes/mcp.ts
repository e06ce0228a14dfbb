import { createRoute } from "@hono/zod-openapi";
import type { Context } from "hono";
import { z } from "zod";
import { type App, type AppEnv, newApp } from "../app.ts";
import { refusals } from "./shared.ts";

const message = { "application/json": { schema: z.unknown() } };

const mcp = createRoute({
  operationId: "mcp",
  method: "post",
  path: "/mcp",
  summary: "The tools for agents, as an MCP server (Streamable HTTP, without sessions)",
  responses: {
    200: {
      description: "one answer, or a stream of progress that ends with it",
      content: { ...message, "text/event-stream": { schema: z.string() } },
    },
    202: { description: "a notification was taken" },
    ...refusals,
  },
});

/**
 * The MCP tools call the API of this very process, without a socket between, and with no more rights than their caller
 * has. Their code is read at the first request: most servers never see one.
 */
export function mcpRoutes(api: () => App): App {
  const app = newApp();
  const answer = async (c: Context<AppEnv>): Promise<Response> => {
    c.env.mayBeSilent?.();
    const { trusted } = c.env;
    const { answerMcp } = await import("@holdfast/mcp/http");
    return answerMcp(c.req.raw, {
      api: async (url, init) => api().fetch(new Request(url, init), trusted === undefined ? {} : { trusted }),
      token: c.req.header("authorization")?.replace(/^Bearer /i, ""),
      held: { turn: c.req.header("holdfast-turn"), claim: c.req.header("holdfast-claim") },
    });
  };
  app.openapi(mcp, answer);
  // Answered by the protocol's own rules: there is no session to listen to or to end.
  app.on(["GET", "DELETE"], "/mcp", answer);
  return app;
}
