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
  type ToViewer,
} from "@holdfast/protocol";
import { Admission } from "../admission.ts";
import { hasEnvironmentEntry, listProcesses } from "../engine/proc-table.ts";
import { findShell } from "../engine/shell.ts";
import { guarded, type SocketHandler } from "../http/guard.ts";
import { terminalRoutes } from "./routes.ts";
import { Terminals } from "./terminals.ts";
import { realTimers, type Timers } from "./timers.ts";

const SECRET = "s".repeat(32);
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
    this.terminals = new Terminals({ boot, shell: findShell(boot.env) }, timers);
    const admission = new Admission(boot);
    admission.admit({ instanceId: boot.instanceId, generation: boot.generation, fence: 1 });
    this.#server = Bun.serve<SocketHandler>({
      port: 0,
      development: false,
      routes: guarded(terminalRoutes(this.terminals), { secret: boot.secret, admission }),
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

  async connect(id: string, query = ""): Promise<TestViewer> {
    const viewer = new TestViewer(this.socketUrl(id, query));
    await viewer.until(({ frames, closed }) => frames.length > 0 || closed !== undefined);
    return viewer;
  }

  /** Processes that came from this bench and live. */
  processes(): number[] {
    const entry = `HOLDFAST_SANDBOX_ID=${this.#sandboxId}`;
    return listProcesses()
      .map(({ pid }) => pid)
      .filter((pid) => hasEnvironmentEntry(pid, entry));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminals.close();
    await this.#server.stop(true);
    rmSync(this.home, { recursive: true });
    const left = () => ({ processes: this.processes(), ttys: ttysOpen() - this.#fdsBefore });
    // The runtime closes its copy of a descriptor a moment after it was told to.
    for (let i = 0; i < 100 && left().ttys > 0; i++) await Bun.sleep(10);
    const { processes, ttys } = left();
    if (processes.length > 0 || ttys > 0) throw new Error(`left behind: ${JSON.stringify(left())}`);
  }
}

/** A viewer that remembers everything, and never waits by the clock. */
export class TestViewer {
  readonly socket: WebSocket;
  readonly frames: ToViewer[] = [];
  closed: { code: number; reason: string } | undefined;
  bytes = new Uint8Array(0);
  #offset = 0;
  readonly #waiting = new Set<() => void>();

  constructor(url: string) {
    // Only the runtime's own WebSocket takes headers; the type is the web's.
    this.socket = new WebSocket(url, { headers: HEADERS } as unknown as string[]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => this.#took(data);
    this.socket.onclose = ({ code, reason }) => {
      this.closed = { code, reason };
      this.#wake();
    };
  }

  get text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** Offset after the last byte it got. */
  get offset(): number {
    return this.#offset;
  }

  frame<T extends ToViewer["type"]>(type: T): Extract<ToViewer, { type: T }> | undefined {
    const is = (frame: ToViewer): frame is Extract<ToViewer, { type: T }> => frame.type === type;
    return this.frames.filter(is).at(-1);
  }

  type(text: string): void {
    this.socket.send(new TextEncoder().encode(text));
  }

  resize(cols: number, rows: number): void {
    this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  async sees(pattern: RegExp): Promise<void> {
    await this.until(({ text }) => pattern.test(text), pattern);
  }

  async until(condition: (viewer: this) => boolean, what: unknown = condition): Promise<void> {
    const deadline = AbortSignal.timeout(10_000);
    while (!condition(this)) {
      if (deadline.aborted) throw new Error(`never came: ${what}\n${this.text.slice(-500)}`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        deadline.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.until(({ closed }) => closed !== undefined);
  }

  #took(data: string | ArrayBuffer): void {
    if (typeof data === "string") this.#tookFrame(JSON.parse(data));
    else {
      const more = new Uint8Array(data);
      const whole = new Uint8Array(this.bytes.length + more.length);
      whole.set(this.bytes);
      whole.set(more, this.bytes.length);
      this.bytes = whole;
      this.#offset += more.length;
    }
    this.#wake();
  }

  #tookFrame(frame: ToViewer): void {
    this.frames.push(frame);
    if (frame.type === "ready") this.#offset = frame.offset;
    if (frame.type === "truncated") this.#offset = frame.to;
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
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
