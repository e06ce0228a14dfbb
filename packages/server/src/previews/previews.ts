import { createServer, type Server, type Socket } from "node:net";
import { pageBytes, tooMany } from "./pages.ts";
import { TcpStream } from "./tcp-stream.ts";
import { findPreview } from "./visit.ts";
import { Visitor, type VisitorDeps } from "./visitor.ts";

/** A visitor's machine that went away without a word is noticed after about a minute. */
const PROBE_AFTER_MS = 30_000;
/** What another server revoked shows when one looks. */
const LOOK_EVERY_MS = 2_000;
/** For one that is turned away to read why. */
const GOODBYE_MS = 1_000;

export interface PreviewsDeps extends VisitorDeps {
  /** Several servers work on the same sandboxes. */
  readonly isShared: boolean;
}

/**
 * The previews' own listener, beside the API's: their pages are another origin, and API calls pay nothing for them. A
 * request's head is read and written anew, everything else passes as it is.
 */
export class Previews {
  readonly #deps: PreviewsDeps;
  readonly #visitors = new Set<Visitor>();
  readonly #server: Server;
  readonly #looking: ReturnType<typeof setInterval> | undefined;

  constructor(deps: PreviewsDeps) {
    this.#deps = deps;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#welcome(socket));
    if (deps.isShared) this.#looking = setInterval(() => void this.#cutRevoked(), LOOK_EVERY_MS);
  }

  /** Resolves with the port. Rejects if it cannot be had. */
  listen({ host, port }: { host: string; port: number }): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#server.once("error", reject);
    this.#server.listen({ host, port, exclusive: true }, () => {
      this.#server.off("error", reject);
      const address = this.#server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
    return promise;
  }

  /** Ends every connection to a port whose address was taken back or has changed. */
  cut(revoked: { sandboxId: string; port: number }): void {
    for (const visitor of this.#visitors) {
      const { at } = visitor;
      if (at?.sandboxId === revoked.sandboxId && at.port === revoked.port) visitor.destroy();
    }
  }

  /** May be called twice. */
  async close(): Promise<void> {
    clearInterval(this.#looking);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const visitor of this.#visitors) visitor.destroy();
    await closed;
  }

  #welcome(socket: Socket): void {
    const { limits } = this.#deps;
    const client = new TcpStream(socket);
    socket.setKeepAlive(true, PROBE_AFTER_MS);
    if (this.#visitors.size >= limits.connections) return void turnAway(client);
    const isFull = (sandboxId: string) => this.#visitorsOf(sandboxId) > limits.connectionsOfSandbox;
    const visitor = new Visitor(this.#deps, { client, address: socket.remoteAddress ?? "unknown", isFull });
    this.#visitors.add(visitor);
    void visitor.serve().finally(() => this.#visitors.delete(visitor));
  }

  #visitorsOf(sandboxId: string): number {
    let count = 0;
    for (const { at } of this.#visitors) if (at?.sandboxId === sandboxId) count++;
    return count;
  }

  async #cutRevoked(): Promise<void> {
    for (const { at } of [...this.#visitors]) {
      if (at === undefined) continue;
      const found = await findPreview(this.#deps.sandboxes, at).catch(() => "unknown");
      if (found === undefined) this.cut(at);
    }
  }
}

function turnAway(client: TcpStream): void {
  void client.write(pageBytes(tooMany)).catch(() => {});
  client.end();
  setTimeout(() => client.destroy(), GOODBYE_MS);
}
