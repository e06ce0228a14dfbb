import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeeperLink } from "@holdfast/keeper-link";
import { terminalCloseCode } from "@holdfast/protocol";
import { TerminalRelay } from "./terminal-relay.ts";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

/** How it ends for a viewer at a relay to a keeper that says this and nothing else. */
async function heardFrom(says: string): Promise<{ frames: unknown[]; code: number }> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-relay-"));
  undo.push(() => rmSync(dir, { recursive: true }));
  const socketPath = join(dir, "keeper.sock");
  const keeper = Bun.serve({
    unix: socketPath,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response()),
    websocket: {
      open: (socket) => void socket.sendText(says),
      message() {},
    },
  });
  undo.push(() => void keeper.stop(true));
  const link = new KeeperLink({ socketPath, secret: "secret", fence: 1 });
  const meter = { received() {}, sent() {}, end() {} };
  const server = Bun.serve<TerminalRelay>({
    port: 0,
    fetch(request, server) {
      const data = new TerminalRelay(
        { link: link },
        { terminalId: "t", query: new URLSearchParams(), meter },
      );
      return server.upgrade(request, { data }) ? undefined : new Response();
    },
    websocket: {
      open: (socket) => socket.data.opened(socket),
      message: (socket, message) => socket.data.fromViewer(message),
      close: (socket) => socket.data.closed(),
    },
  });
  undo.push(() => void server.stop(true));
  const frames: unknown[] = [];
  const viewer = new WebSocket(`ws://localhost:${server.port}`);
  viewer.onmessage = ({ data }) => frames.push(JSON.parse(String(data)));
  const { code } = await new Promise<CloseEvent>((resolve) => {
    viewer.onclose = resolve;
  });
  return { frames, code };
}

const nonsense = ["not JSON", "null", '{"type":"ready","offset":"far"}', '{"type":"truncated","to":-1}'];
test.each(nonsense)("a keeper that says %s ends the viewer's call, and not the server", async (text) => {
  expect(await heardFrom(text)).toEqual({
    frames: [{ type: "error", error: expect.objectContaining({ code: "internal" }) }],
    code: terminalCloseCode.refused,
  });
});
