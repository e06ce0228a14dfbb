import { SdkError, SdkErrorCode } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Client } from "holdfast";
import { MAX_MESSAGE_BYTES } from "./bounds.ts";
import { lastingConnection } from "./connection.ts";
import { newServer } from "./server.ts";

/** Serves one client on stdin and stdout until it hangs up. */
export async function serveOnStdio(options: {
  connect: () => Promise<Client>;
  onError: (error: Error) => void;
}): Promise<void> {
  const maxBufferSize = MAX_MESSAGE_BYTES;
  const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize });
  const deps = { connection: lastingConnection(options.connect), endsWork: unlessLeft };
  serveStdio(() => newServer(deps), { transport, onerror: options.onError });
  await new Promise<void>((resolve) => {
    const close = transport.onclose;
    transport.onclose = () => {
      close?.();
      resolve();
    };
  });
}

/** Who went away has cancelled nothing: what it began goes on, and is found by its id. */
function unlessLeft(signal: AbortSignal): AbortSignal {
  const cancelled = new AbortController();
  const follow = () => {
    if (!hasLeft(signal.reason)) cancelled.abort(signal.reason);
  };
  if (signal.aborted) follow();
  else signal.addEventListener("abort", follow, { once: true });
  return cancelled.signal;
}

function hasLeft(reason: unknown): boolean {
  return reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;
}
