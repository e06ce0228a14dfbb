import { createMcpHandler } from "@modelcontextprotocol/server";
import type { Client } from "holdfast";
import { MAX_MESSAGE_BYTES } from "./bounds.ts";
import { newServer } from "./server.ts";

/**
 * Answers one HTTP request of the protocol, of the present revision or of those before it. Nothing stays behind: the
 * next request may reach another server, or the same one after a crash.
 */
export function answerMcp(request: Request, { client }: { client: Client }): Promise<Response> {
  const connection = { client: async () => client, failed: () => undefined };
  // Over HTTP a client cancels by hanging up.
  const deps = { connection, endsWork: (signal: AbortSignal) => signal };
  return createMcpHandler(() => newServer(deps), { maxRequestBodySize: MAX_MESSAGE_BYTES }).fetch(request);
}
