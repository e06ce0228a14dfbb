import { createMcpHandler } from "@modelcontextprotocol/server";
import { Client, type ConnectOptions } from "holdfast";
import { MAX_MESSAGE_BYTES } from "./bounds.ts";
import { newServer } from "./server.ts";

/** Who asks, and the API that the tools call for it. */
export interface Caller {
  readonly api: NonNullable<ConnectOptions["fetch"]>;
  readonly token: string | undefined;
  /** The turn and the claim that all of its calls are a part of. */
  readonly held: { turn: string | undefined; claim: string | undefined };
}

/** As long as a server that is just being started needs; then the agent is told. */
const PATIENCE_MS = 5_000;

/**
 * Answers one HTTP request of the protocol, of the present revision or of those before it. Nothing stays behind: the
 * next request may reach another server, or the same one after a crash.
 */
export async function answerMcp(request: Request, caller: Caller): Promise<Response> {
  const client = await clientFor(caller);
  const connection = { client: async () => client, failed: () => undefined };
  // Over HTTP a client cancels by hanging up.
  const deps = { connection, endsWork: (signal: AbortSignal) => signal };
  return createMcpHandler(() => newServer(deps), { maxRequestBodySize: MAX_MESSAGE_BYTES }).fetch(request);
}

async function clientFor({ api, token, held }: Caller): Promise<Client> {
  // No address of anything: the requests never leave this process.
  const url = "http://holdfast.internal";
  const client = await Client.connect({ url, token, fetch: api, patienceMs: PATIENCE_MS });
  return client.carrying(() => held);
}
