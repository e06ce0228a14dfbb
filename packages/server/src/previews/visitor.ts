import type { KeeperLink, PortConnection } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import type { Log } from "../log.ts";
import { cookieHeader, tokenInTarget, tokensInCookies } from "./cookie.ts";
import { exchange, NothingHeard } from "./exchange.ts";
import { requestFraming } from "./framing.ts";
import { MalformedMessage, parseRequestHead, type RequestHead, valuesOf } from "./http-head.ts";
import type { PreviewLimits } from "./limits.ts";
import { badRequest, movedTo, notFound, notReady, type Page, pageBytes, pageOf, tooMany } from "./pages.ts";
import type { PreviewName, PreviewPlace } from "./preview-name.ts";
import { readHead } from "./read-head.ts";
import { wantsWebSocket } from "./rewrite.ts";
import type { TcpStream } from "./tcp-stream.ts";
import { type Found, findPreview, reachInside } from "./visit.ts";

/** For a visitor to take its last answer and leave. */
const LINGER_MS = 2_000;

export interface VisitorDeps {
  readonly sandboxes: Lifecycle<KeeperLink>["sandboxes"];
  readonly place: PreviewPlace;
  /** An operator's proxy is in front. */
  readonly isProxied: boolean;
  readonly limits: PreviewLimits;
  readonly log: Log;
  readonly isReady: () => boolean;
}

/** One visitor's connection: requests one after the other, each judged by its own name. */
export class Visitor {
  readonly #deps: VisitorDeps;
  readonly #client: TcpStream;
  readonly #address: string;
  readonly #isFull: (sandboxId: string) => boolean;
  #at: PreviewName | undefined;
  /** To the program: in use, or left from the request before. */
  #inside: { readonly connection: PortConnection; readonly found: Found } | undefined;

  constructor(
    deps: VisitorDeps,
    of: { client: TcpStream; address: string; isFull: (sandboxId: string) => boolean },
  ) {
    this.#deps = deps;
    this.#client = of.client;
    this.#address = of.address;
    this.#isFull = of.isFull;
    // Who leaves while the program is silent leaves it, too.
    void of.client.closed.then(() => this.#leave());
  }

  /** What is visited now. */
  get at(): PreviewName | undefined {
    return this.#at;
  }

  /** Resolves when it is over. */
  async serve(): Promise<void> {
    try {
      await this.#serveRequests();
      this.#client.end();
      await Promise.race([this.#client.closed, Bun.sleep(LINGER_MS)]);
    } catch {
      // A visitor that leaves, or a program that breaks off, is no fault of ours.
    } finally {
      this.destroy();
    }
  }

  /** At once. May be called twice. */
  destroy(): void {
    this.#client.destroy();
    this.#leave();
  }

  async #serveRequests(): Promise<void> {
    for (;;) {
      const request = await this.#nextRequest();
      if (request === undefined) return;
      const next = request === "malformed" ? badRequest : await this.#answer(request);
      if (next === "again") continue;
      if (next !== "over")
        await this.#client.write(pageBytes(next, request === "malformed" ? undefined : request));
      return;
    }
  }

  async #nextRequest(): Promise<RequestHead | "malformed" | undefined> {
    const { idleMs, headMs } = this.#deps.limits;
    let timer = setTimeout(() => this.destroy(), idleMs);
    const onFirstByte = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.destroy(), headMs);
    };
    try {
      const text = await readHead(this.#client, onFirstByte);
      if (text === undefined) return undefined;
      const request = parseRequestHead(text);
      requestFraming(request);
      return valuesOf(request, "host").length === 1 ? request : "malformed";
    } catch (error) {
      if (error instanceof MalformedMessage) return "malformed";
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** "again" or "over" if the program answered; else what the visitor is told. */
  async #answer(request: RequestHead): Promise<"again" | "over" | Page> {
    const { sandboxes, place, isReady, log } = this.#deps;
    const name = place.parse(hostOf(request));
    if (name === undefined) return notFound;
    if (!isReady()) return notReady;
    // Before the look: what is revoked after it is cut.
    this.#at = name;
    try {
      const inTarget = tokenInTarget(request);
      const tokens = [...tokensInCookies(request), ...(inTarget === undefined ? [] : [inTarget.token])];
      const found = await findPreview(sandboxes, name, tokens);
      if (found === undefined) return notFound;
      const { token } = found.exposed;
      this.#at = { ...name, token };
      if (token !== null && token === inTarget?.token) {
        const address = `${place.scheme}://${hostOf(request)}${inTarget.rest}`;
        return movedTo(address, cookieHeader(token, place.scheme));
      }
      return this.#isFull(name.sandboxId) ? tooMany : await this.#pass(request, found);
    } catch (error) {
      if (!(error instanceof HoldfastError)) log.error("a visit failed", { error: String(error) });
      return pageOf(error, name.port);
    } finally {
      this.#at = undefined;
    }
  }

  /**
   * A connection to the program that is left from the request before is used again, if the request can be sent twice:
   * the program may close it in the same moment.
   */
  async #pass(request: RequestHead, found: Found): Promise<"again" | "over"> {
    const left = isRepeatable(request) ? this.#inside : undefined;
    if (left?.connection.isQuiet && isSame(left.found, found)) {
      try {
        return await this.#exchange(request, { ...left, isUsed: true });
      } catch (error) {
        if (!(error instanceof NothingHeard)) throw error;
      }
    }
    this.#leave();
    const connection = await reachInside(this.#deps.sandboxes, found);
    this.#inside = { connection, found };
    if (this.#client.isClosed) return "over";
    return this.#exchange(request, { connection, found, isUsed: false });
  }

  async #exchange(
    request: RequestHead,
    { connection, found, isUsed }: { connection: PortConnection; found: Found; isUsed: boolean },
  ): Promise<"again" | "over"> {
    const { place, isProxied } = this.#deps;
    const visitor = { address: this.#address, host: hostOf(request), scheme: place.scheme, isProxied };
    const { port } = found.exposed;
    try {
      const parts = { client: this.#client, inside: connection, isUsed, request, port, visitor };
      const { client, inside } = await exchange(parts);
      if (inside === "over") this.#leave();
      return client;
    } catch (error) {
      this.#leave();
      if (error instanceof NothingHeard) throw error;
      this.#client.destroy();
      return "over";
    }
  }

  #leave(): void {
    this.#inside?.connection.destroy();
    this.#inside = undefined;
  }
}

function hostOf(request: RequestHead): string {
  return valuesOf(request, "host")[0] ?? "";
}

/** It changes nothing, so that to send it twice is to send it once. */
function isRepeatable(request: RequestHead): boolean {
  const isSafe = ["GET", "HEAD", "OPTIONS"].includes(request.method);
  return isSafe && requestFraming(request).kind === "none" && !wantsWebSocket(request);
}

/** The same port of the same instance. */
function isSame(a: Found, b: Found): boolean {
  return (
    a.exposed.port === b.exposed.port &&
    a.holding.lease?.instanceId === b.holding.lease?.instanceId &&
    b.holding.lease?.phase === "live"
  );
}
