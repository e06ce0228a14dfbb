import { expect, test } from "bun:test";
import type { ToViewer } from "@holdfast/protocol/terminal-socket";
import { Patience } from "./backoff.ts";
import { TerminalLink } from "./terminal-link.ts";

type Peer = Bun.ServerWebSocket<URLSearchParams>;
/** What happens when a viewer connects; what it returns, when the viewer first says something. */
type Turn = (peer: Peer) => (() => void) | undefined;

/** A terminal's other end, of which a test writes what happens at each connection. */
class Script {
  readonly heard: string[] = [];
  readonly queries: Record<string, string>[] = [];
  readonly #server: Bun.Server<URLSearchParams>;
  #next: (() => void) | undefined;

  constructor(turns: Turn[]) {
    this.#server = Bun.serve<URLSearchParams>({
      port: 0,
      fetch(request, server) {
        server.upgrade(request, { data: new URL(request.url).searchParams });
      },
      websocket: {
        open: (peer) => {
          this.queries.push(Object.fromEntries(peer.data));
          this.#next = turns.shift()?.(peer);
        },
        message: (_, message) => {
          this.heard.push(String(message));
          this.#next?.();
          this.#next = undefined;
        },
      },
    });
  }

  link(options: { readonly?: boolean; check?: () => Promise<void> } = {}): TerminalLink {
    return new TerminalLink({
      openSocket: (query) => {
        const search = new URLSearchParams(
          Object.entries(query).map(([name, value]) => [name, String(value)]),
        );
        return new WebSocket(`ws://127.0.0.1:${this.#server.port}/?${search}`);
      },
      check: options.check ?? (async () => {}),
      patience: new Patience(5_000),
      serverUrl: "http://test",
      lifetime: new AbortController().signal,
      readonly: options.readonly ?? false,
      ptyId: "pty-1",
      since: 0,
      size: { cols: 80, rows: 24 },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const say = (peer: Peer, frame: ToViewer) => void peer.send(JSON.stringify(frame));
const ready = (peer: Peer, offset: number) =>
  say(peer, { type: "ready", terminalId: "t", ptyId: "pty-1", offset, cols: 80, rows: 24, readonly: false });
const bytes = (text: string) => new TextEncoder().encode(text);
const exit = { exitCode: 3, signal: null, cause: "program", at: "2026-11-15T00:00:00.000Z" } as const;
const finish = (peer: Peer) => {
  say(peer, { type: "exit", exit });
  peer.close(4000, "program");
};

async function textOf(link: TerminalLink): Promise<string> {
  let text = "";
  for await (const event of link.output.read()) {
    text += event.type === "output" ? new TextDecoder().decode(event.bytes) : `[${event.from}-${event.to}]`;
  }
  return text;
}

test("a broken connection is made again from the next byte, with the size that was wanted", async () => {
  await using script = new Script([
    (peer) => {
      ready(peer, 0);
      peer.send(bytes("abc"));
      return () => peer.close(4002, "no answer");
    },
    (peer) => {
      ready(peer, 3);
      say(peer, { type: "truncated", from: 3, to: 10, restore: "" });
      peer.send(bytes("xyz"));
      return () => finish(peer);
    },
  ]);
  const link = script.link();
  const changes: string[] = [];
  link.onConnection.add((change) => changes.push(change));
  link.resize({ cols: 100, rows: 30 });
  expect(await textOf(link)).toBe("abc[3-10]xyz");
  expect(await link.exited).toEqual(exit);
  expect(script.queries.map(({ since, ptyId }) => [since, ptyId])).toEqual([
    ["0", "pty-1"],
    ["3", "pty-1"],
  ]);
  expect(changes).toEqual(["lost", "back"]);
  expect(script.heard.filter((frame) => frame.includes("resize"))).toEqual(
    Array.from({ length: 2 }, () => '{"type":"resize","cols":100,"rows":30}'),
  );
});

test("what the keeper refuses, and what the server says about it, ends the terminal with that error", async () => {
  const error = { code: "state_lost", message: "has a new program since", retryable: false } as const;
  await using refusing = new Script([
    (peer) => {
      say(peer, { type: "error", error });
      peer.close(4001, "state_lost");
      return undefined;
    },
  ]);
  const refused = refusing.link();
  expect(refused.attached()).rejects.toThrow("has a new program");
  expect(refused.exited).rejects.toMatchObject({ code: "state_lost" });

  await using breaking = new Script([(peer) => void peer.terminate()]);
  const gone = breaking.link({ check: () => Promise.reject(new Error("there is no terminal t")) });
  await expect(gone.attached()).rejects.toThrow("there is no terminal t");
  await expect(textOf(gone)).rejects.toThrow("there is no terminal t");
  await expect(gone.write(bytes("x"))).rejects.toThrow("there is no terminal t");
});

test("typing waits while the program does not read, and keeps its order", async () => {
  let peer: Peer | undefined;
  await using script = new Script([
    (first) => {
      peer = first;
      ready(first, 0);
      say(first, { type: "input", state: "full" });
      return undefined;
    },
  ]);
  const link = script.link();
  await link.attached();
  await Bun.sleep(20); // so that `full` has surely come: nothing tells when
  const written = Promise.all([link.write(bytes("one")), link.write(bytes("two"))]);
  await Bun.sleep(20);
  expect(script.heard).toEqual([]);
  if (peer !== undefined) say(peer, { type: "input", state: "open" });
  await written;
  while (script.heard.length < 2) await Bun.sleep(1);
  expect(script.heard).toEqual(["one", "two"]);
  link.close();
  await expect(link.exited).rejects.toThrow("closed");
});

test("a read-only one does not type, and a closed one does not come back", async () => {
  await using script = new Script([(peer) => void ready(peer, 0)]);
  const link = script.link({ readonly: true });
  await link.attached();
  expect(link.write(bytes("x"))).rejects.toMatchObject({ code: "forbidden" });
  const text = textOf(link);
  link.close();
  link.close();
  expect(await text).toBe("");
  expect(script.queries).toHaveLength(1);
  expect(script.queries[0]).toMatchObject({ readonly: "true" });
});
