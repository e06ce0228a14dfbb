import type { Socket } from "node:net";
import { HoldfastError, PortFlow } from "@holdfast/protocol";
import type { UseClock } from "../engine/use-clock.ts";
import type { SocketHandler } from "../http/guard.ts";
import type { Gate } from "../lifecycle/gate.ts";

type WebSocket = Bun.ServerWebSocket<SocketHandler>;

// A program that listens takes a connection at once; one whose queue is full must not hold a visitor for minutes.
const CONNECT_MS = 10_000;
/** Which of the two a server on "localhost" gets is up to its runtime. */
const LOOPBACK = ["127.0.0.1", "::1"];

export interface PortRelayOptions {
  readonly port: number;
  readonly gate: Gate;
  readonly use: UseClock;
}

/**
 * One connection to a program that listens in here, from its upgrade on. Bytes on it are use of the sandbox; that it is
 * open is none: a page that somebody forgot in a browser holds nothing awake as long as it is silent.
 */
export class PortRelay implements SocketHandler {
  readonly #options: PortRelayOptions;
  #flow: PortFlow | undefined;
  #inside: Socket | undefined;
  #closed = false;

  constructor(options: PortRelayOptions) {
    this.#options = options;
  }

  open(socket: WebSocket): void {
    void this.#connect(socket).catch((error: unknown) => {
      const told = error instanceof HoldfastError ? error : new HoldfastError("internal", String(error));
      socket.sendText(JSON.stringify({ type: "refused", ...told.toBody() }));
      socket.close();
    });
  }

  message(_socket: WebSocket, message: string | Buffer): void {
    this.#noteUse();
    this.#flow?.hear(message);
  }

  close(): void {
    this.#closed = true;
    this.#inside?.destroy();
  }

  async #connect(socket: WebSocket): Promise<void> {
    const { gate, port } = this.#options;
    // Refused while the instance is about to be stopped. What holds it later is bytes, not this.
    gate.enter({ kind: "work", what: `a connection to port ${port}` })();
    const inside = await reach(port);
    if (this.#closed) return void inside.destroy();
    this.#inside = inside;
    const flow = this.#flowBetween(socket, inside);
    this.#flow = flow;
    inside.on("data", (bytes: Uint8Array) => {
      this.#noteUse();
      if (!flow.send(bytes)) inside.pause();
    });
    inside.on("end", () => flow.say({ type: "end" }));
    inside.on("error", () => {}); // its close follows
    inside.on("close", () => socket.close());
    flow.say({ type: "open" });
  }

  #flowBetween(socket: WebSocket, inside: Socket): PortFlow {
    const flow = new PortFlow({
      send: (message) =>
        void (typeof message === "string" ? socket.sendText(message) : socket.sendBinary(message)),
      onBytes: (bytes) => void inside.write(bytes, () => flow.taken(bytes.length)),
      onEnd: () => void inside.end(),
      onRoom: () => void inside.resume(),
      onBroken: () => socket.close(),
    });
    return flow;
  }

  #noteUse(): void {
    this.#options.use.note(`bytes went through port ${this.#options.port}`);
  }
}

// Loaded when it is first needed: it takes 1.6 MiB and 2 ms, and most sandboxes expose no port.
const net = () => import("node:net");

async function reach(port: number): Promise<Socket> {
  const failures: unknown[] = [];
  for (const host of LOOPBACK) {
    try {
      return await connected(host, port);
    } catch (error) {
      failures.push(error);
    }
  }
  throw new HoldfastError("wrong_state", `nothing in the sandbox takes connections on port ${port}`, {
    hint: `start a program that listens on port ${port}; on "localhost" is enough`,
    cause: failures[0],
    details: { port, listening: false },
    started: "no",
    retryable: true,
  });
}

async function connected(host: string, port: number): Promise<Socket> {
  const { connect } = await net();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  const timer = setTimeout(() => socket.destroy(new Error("not taken in time")), CONNECT_MS);
  socket.once("connect", () => resolve(socket));
  socket.once("error", reject);
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off("error", reject);
  });
}
