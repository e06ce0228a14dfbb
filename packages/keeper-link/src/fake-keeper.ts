import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeeperLink } from "./keeper-link.ts";

type Answer = (request: Request) => Response | Promise<Response>;

/** A server on a socket of its own that answers as a test says; `routes` by path, with `/v1`. */
export function fakeKeeper(routes: Record<string, Answer>) {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-link-"));
  const socketPath = join(dir, "keeper.sock");
  // As the keeper does it; the types do not know that a unix socket takes an idle timeout, too.
  const idle: object = { idleTimeout: 0 };
  const server = Bun.serve({ ...idle, unix: socketPath, routes, fetch: noRoute });
  const stop = () => server.stop(true);
  return {
    socketPath,
    link: new KeeperLink({ socketPath, secret: "the secret", fence: 3 }),
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(dir, { recursive: true });
    },
  };
}

function noRoute(request: Request): Response {
  const message = `the keeper has no ${request.method} ${new URL(request.url).pathname}`;
  return refusal(404, { code: "not_found", message });
}

export function refusal(status: number, error: { code: string; message: string }): Response {
  return Response.json({ error: { retryable: false, ...error } }, { status });
}
