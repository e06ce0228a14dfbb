import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { watchKeeper } from "./watch.ts";

test("a watch outlasts the time after which the runtime closes silent connections, and tells the end", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-watch-"));
  const socketPath = join(dir, "keeper.sock");
  // As the keeper does it; the types do not know that a unix socket takes an idle timeout, too.
  const idle: object = { idleTimeout: 0 };
  const keeper = Bun.serve({ ...idle, unix: socketPath, fetch: () => new Response("", { status: 401 }) });
  let ends = 0;
  const ended = Promise.withResolvers<void>();
  const onEnd = () => {
    ends++;
    ended.resolve();
  };
  await watchKeeper({ socketPath, onEnd });
  await silentConnectionClosed(socketPath);
  // The runtime closes all that are due at once: by the answer to this, the news of each has come.
  await fetch("http://keeper/", { unix: socketPath });
  expect(ends).toBe(0);
  await keeper.stop(true);
  await ended.promise;
  expect(ends).toBe(1);
  rmSync(dir, { recursive: true });
}, 30_000);

async function silentConnectionClosed(unix: string): Promise<void> {
  const closed = Promise.withResolvers<void>();
  await Bun.connect({ unix, socket: { data() {}, close: () => closed.resolve() } });
  await closed.promise;
}
