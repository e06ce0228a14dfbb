import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Env,
  FENCE_HEADER,
  type KeeperBoot,
  type TerminalCreated,
  type Terminal as TerminalFacts,
  type TerminalRequest,
} from "@holdfast/protocol";
import { describe, hasEnvironmentEntry, listProcesses, type ProcessEntry } from "../engine/proc-table.ts";
import { findShell } from "../engine/shell.ts";
import { UseClock } from "../engine/use-clock.ts";
import { guarded, type SocketHandler } from "../http/guard.ts";
import { testGuard } from "../lifecycle/test-door.ts";
import { terminalRoutes } from "./routes.ts";
import { Terminals } from "./terminals.ts";
import { TestViewer } from "./test-viewer.ts";
import { realTimers, type Timers } from "./timers.ts";

const SECRET = "s".repeat(32);
/** For a test that takes a second on a machine that does nothing else. */
export const TEST_MS = 120_000;
export const HEADERS = { Authorization: `Bearer ${SECRET}`, [FENCE_HEADER]: "1" };

/** Terminals behind a real server, for tests; closing it fails if anything is left behind. */
export class Bench {
  readonly terminals: Terminals;
  readonly home = mkdtempSync(join(tmpdir(), "holdfast-terminal-"));
  readonly #sandboxId = `test-${crypto.randomUUID()}`;
  readonly #server: Bun.Server<SocketHandler>;
  readonly #fdsBefore = ttysOpen();

  constructor(timers: Timers = realTimers) {
    const boot = bootOf({ home: this.home, sandboxId: this.#sandboxId });
    const host = { boot, shell: findShell(boot.env), use: new UseClock() };
    this.terminals = new Terminals(host, timers);
    this.#server = Bun.serve<SocketHandler>({
      port: 0,
      development: false,
      routes: guarded(terminalRoutes(this.terminals), testGuard(host)),
      fetch: () => new Response("nothing here"),
      websocket: {
        maxPayloadLength: 1024 * 1024,
        idleTimeout: 0,
        sendPings: false,
        open: (socket) => socket.data.open?.(socket),
        message: (socket, message) => socket.data.message(socket, message),
        drain: (socket) => socket.data.drain?.(socket),
        pong: (socket) => socket.data.pong?.(socket),
        close: (socket, code, reason) => socket.data.close?.(socket, code, reason),
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  get port(): number {
    return this.#server.port ?? 0;
  }

  async call(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const reply = await fetch(`${this.url}/v1/terminals${path}`, {
      method,
      headers: HEADERS,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: await reply.json() };
  }

  /** A terminal without the start-up files of the machine's user. */
  async create(request: TerminalRequest = {}): Promise<TerminalCreated> {
    const command = request.command ?? ["bash", "--norc", "--noprofile"];
    return (await this.call("POST", "", { ...request, command })).body as TerminalCreated;
  }

  async look(id: string): Promise<TerminalFacts> {
    return (await this.call("GET", `/${id}`)).body as TerminalFacts;
  }

  /** The address of a viewer's socket. */
  socketUrl(id: string, query = ""): string {
    return `${this.url.replace("http", "ws")}/v1/terminals/${id}/connect?${query}`;
  }

  connect(id: string, query = ""): Promise<TestViewer> {
    return TestViewer.connect(this.socketUrl(id, query), HEADERS);
  }

  /** Processes that came from this bench and live. */
  processes(): ProcessEntry[] {
    const entry = `HOLDFAST_SANDBOX_ID=${this.#sandboxId}`;
    return listProcesses().filter(({ pid }) => hasEnvironmentEntry(pid, entry));
  }

  commandLines(): string[] {
    return this.processes().map(describe);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminals.close();
    await this.#server.stop(true);
    rmSync(this.home, { recursive: true });
    const left = () => ({ processes: this.commandLines(), ttys: ttysOpen() - this.#fdsBefore });
    // The runtime closes its copy of a descriptor a moment after it was told to.
    for (let i = 0; i < 100 && left().ttys > 0; i++) await Bun.sleep(10);
    const { processes, ttys } = left();
    if (processes.length > 0 || ttys > 0) throw new Error(`left behind: ${JSON.stringify(left())}`);
  }
}

function bootOf({ home, sandboxId }: { home: string; sandboxId: string }): KeeperBoot {
  const env: Env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home, LANG: "C.UTF-8", PS1: "$ " };
  return {
    secret: SECRET,
    sandboxId,
    instanceId: "i",
    generation: 1,
    socketPath: join(home, "socket"),
    stateDir: home,
    env,
    cwd: home,
  };
}

function ttysOpen(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith("/dev/pt");
    } catch {
      return false;
    }
  }).length;
}
