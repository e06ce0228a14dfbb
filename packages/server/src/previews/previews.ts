import { createServer, type Server, type Socket } from "node:net";
import type { ByteStream, KeeperLink } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import type { Log } from "../log.ts";
import { exchange } from "./exchange.ts";
import { requestFraming } from "./framing.ts";
import { MalformedMessage, parseRequestHead, type RequestHead, valuesOf } from "./http-head.ts";
import { badRequest, notFound, notReady, type Page, pageBytes, pageOf, tooMany } from "./pages.ts";
import type { PreviewName, PreviewPlace } from "./preview-name.ts";
import { readHead } from "./read-head.ts";
import { TcpStream } from "./tcp-stream.ts";
import { type Found, findPreview, reachInside } from "./visit.ts";

/** Each may hold half a megabyte. */
const MOST_CONNECTIONS = 1024;
/** So that the visitors of one sandbox leave room for the others'. */
const MOST_OF_A_SANDBOX = 256;
/** From its first byte on; a browser sends a head in one piece. */
const HEAD_MS = 10_000;
/** Between two requests of one connection. */
const IDLE_MS = 60_000;
/** For a visitor to take its last answer and leave. */
const LINGER_MS = 2_000;
/** A visitor's machine that went away without a word is noticed after about a minute. */
const PROBE_AFTER_MS = 30_000;
/** What another server revoked shows when one looks. */
const LOOK_EVERY_MS = 2_000;

export interface PreviewsDeps {
  readonly sandboxes: Lifecycle<KeeperLink>["sandboxes"];
  readonly place: PreviewPlace;
  /** An operator's proxy is in front. */
  readonly isProxied: boolean;
  /** Several servers work on the same sandboxes. */
  readonly isShared: boolean;
  readonly log: Log;
  readonly isReady: () => boolean;
}

/** A visitor's connection, and what it visits now. */
interface Visit {
  readonly client: TcpStream;
  readonly address: string;
  at: PreviewName | undefined;
  inside: ByteStream | undefined;
}

/**
 * The previews' own listener, beside the API's: their pages are another origin, and API calls pay nothing for them. A
 * request's head is read and written anew, everything else passes as it is.
 */
export class Previews {
  readonly #deps: PreviewsDeps;
  readonly #visits = new Set<Visit>();
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
    for (const { at, client } of this.#visits)
      if (at?.sandboxId === revoked.sandboxId && at.port === revoked.port) client.destroy();
  }

  /** May be called twice. */
  async close(): Promise<void> {
    clearInterval(this.#looking);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { client } of this.#visits) client.destroy();
    await closed;
  }

  #welcome(socket: Socket): void {
    const client = new TcpStream(socket);
    socket.setKeepAlive(true, PROBE_AFTER_MS);
    if (this.#visits.size >= MOST_CONNECTIONS) return void turnAway(client);
    const visit: Visit = {
      client,
      address: socket.remoteAddress ?? "unknown",
      at: undefined,
      inside: undefined,
    };
    this.#visits.add(visit);
    // Who leaves while the program is silent leaves it, too.
    void client.closed.then(() => visit.inside?.destroy());
    void this.#serve(visit)
      // A visitor that leaves, or a program that breaks off, is no fault of ours.
      .catch(() => {})
      .finally(() => {
        client.destroy();
        this.#visits.delete(visit);
      });
  }

  async #serve(visit: Visit): Promise<void> {
    for (;;) {
      const request = await this.#nextRequest(visit.client);
      if (request === undefined) break;
      const next = request === "malformed" ? badRequest : await this.#answer(visit, request);
      if (next === "again") continue;
      if (next !== "over")
        await visit.client.write(pageBytes(next, request === "malformed" ? undefined : request));
      break;
    }
    visit.client.end();
    await Promise.race([visit.client.closed, Bun.sleep(LINGER_MS)]);
  }

  async #nextRequest(client: TcpStream): Promise<RequestHead | "malformed" | undefined> {
    let timer = setTimeout(() => client.destroy(), IDLE_MS);
    const onFirstByte = () => {
      clearTimeout(timer);
      timer = setTimeout(() => client.destroy(), HEAD_MS);
    };
    try {
      const text = await readHead(client, onFirstByte);
      if (text === undefined) return undefined;
      const request = parseRequestHead(text);
      requestFraming(request);
      if (valuesOf(request, "host").length !== 1) return "malformed";
      return request;
    } catch (error) {
      if (error instanceof MalformedMessage) return "malformed";
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** "again" or "over" if the program answered; else what the visitor is told. */
  async #answer(visit: Visit, request: RequestHead): Promise<"again" | "over" | Page> {
    const { sandboxes, place, isReady } = this.#deps;
    const host = valuesOf(request, "host")[0] ?? "";
    const name = place.parse(host);
    if (name === undefined) return notFound;
    if (!isReady()) return notReady;
    // Before the look: what is revoked after it is cut.
    visit.at = name;
    try {
      const found = await findPreview(sandboxes, name);
      if (found === undefined) return notFound;
      if (this.#visitsOf(name.sandboxId) > MOST_OF_A_SANDBOX) return tooMany;
      return await this.#pass(visit, { found, request, host });
    } catch (error) {
      if (!(error instanceof HoldfastError)) this.#deps.log.error("a visit failed", { error: String(error) });
      return pageOf(error, name.port);
    } finally {
      visit.at = undefined;
    }
  }

  async #pass(
    visit: Visit,
    { found, request, host }: { found: Found; request: RequestHead; host: string },
  ): Promise<"again" | "over"> {
    const { sandboxes, place, isProxied } = this.#deps;
    const { client, address } = visit;
    const inside = await reachInside(sandboxes, found);
    visit.inside = inside;
    const visitor = { address, host, scheme: place.scheme, isProxied };
    try {
      if (client.isClosed) return "over";
      return await exchange({ client, inside, request, port: found.exposed.port, visitor });
    } catch {
      client.destroy();
      return "over";
    } finally {
      visit.inside = undefined;
      inside.destroy();
    }
  }

  #visitsOf(sandboxId: string): number {
    let count = 0;
    for (const { at } of this.#visits) if (at?.sandboxId === sandboxId) count++;
    return count;
  }

  async #cutRevoked(): Promise<void> {
    for (const { at } of [...this.#visits]) {
      if (at === undefined) continue;
      const found = await findPreview(this.#deps.sandboxes, at).catch(() => "unknown");
      if (found === undefined) this.cut(at);
    }
  }
}

function turnAway(client: TcpStream): void {
  void client.write(pageBytes(tooMany)).catch(() => {});
  client.end();
  setTimeout(() => client.destroy(), 1_000);
}
