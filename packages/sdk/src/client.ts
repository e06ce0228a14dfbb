import type { Continuity } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { type Carried, terminalSubprotocols } from "@holdfast/protocol/terminal-socket";
import { Patience } from "./backoff.ts";
import { discover, type ServerAddress } from "./discover.ts";
import { failureOfAnswer, failureOfConnection, mayNotBeThere, pageOrigin } from "./failures.ts";
import { type Near, type NearQuestion, nearServer } from "./near.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;
export type NewWebSocket = new (url: string, protocols: string[]) => WebSocket;

/** How to reach the server. */
export interface ConnectOptions extends ServerAddress {
  /** Used instead of the global `fetch`: for a proxy, a unix socket, or a test without a socket. */
  fetch?: Fetch | undefined;
  /** Used instead of the global `WebSocket`, which Node has from version 22 on: the package `ws` will do. */
  WebSocket?: NewWebSocket | undefined;
  /** How long a call that may safely be repeated goes on trying while the server is away. Default: 30 s. */
  patienceMs?: number | undefined;
  /**
   * The W3C `traceparent` of what is being done now, if it is traced: the server's spans, if it makes any, go into the
   * same trace.
   *
   * @example
   * ```ts
   * // With OpenTelemetry, what `propagation.inject(context.active(), carrier)` puts there.
   * const traceparent = () => "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
   * const sandbox = await Sandbox.get("issue-42", { traceparent });
   * ```
   */
  traceparent?: (() => string | undefined) | undefined;
}

/** One request. `again: "safe"` says that sending it twice does no more than sending it once. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  again: "safe" | "never";
  query?: Record<string, string | number | boolean | undefined>;
  json?: unknown;
  body?: Uint8Array | Blob | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** The turn that a sandbox's calls are a part of, and the token of the claim under which they are made. */
export type Carries = Pick<Carried, "turn" | "claim">;

/** An answer's body with what its headers say about the sandbox. */
export interface Answer<T> {
  status: number;
  body: T;
  generation: number;
  continuity: Continuity;
}

// Longer than a server needs to restart and to find its sandboxes again.
const DEFAULT_PATIENCE_MS = 30_000;

/**
 * A server, and how to talk to it: addresses, tokens, errors, and repeating what is safe to repeat.
 *
 * @example
 * ```ts
 * const client = await Client.connect({ patienceMs: 5_000 });
 * const sandboxes = await Sandbox.list({ client });
 * ```
 */
export class Client {
  readonly url: string;
  readonly patienceMs: number;
  readonly #token: string | undefined;
  readonly #fetch: Fetch;
  /** The shorter way to a server on this machine, where there is one. */
  readonly #near: Near | undefined;
  readonly #WebSocket: NewWebSocket | undefined;
  readonly #carried: () => Carries;
  readonly #traceparent: (() => string | undefined) | undefined;
  /** A server that has answered once and is now away is restarting; one that never did is not there. */
  #answered = false;

  private constructor(
    address: { url: string; token: string | undefined; near: Near | undefined },
    options: ConnectOptions,
    carried: () => Carries = () => ({}),
  ) {
    this.url = address.url;
    this.#token = address.token;
    this.#near = address.near;
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
    this.#WebSocket = options.WebSocket ?? globalThis.WebSocket;
    this.patienceMs = options.patienceMs ?? DEFAULT_PATIENCE_MS;
    this.#carried = carried;
    this.#traceparent = options.traceparent;
  }

  /**
   * Finds the address and the token. Sends nothing yet.
   *
   * @example
   * ```ts
   * const client = await Client.connect();
   * const [one, two] = await Promise.all([Sandbox.create({}, { client }), Sandbox.create({}, { client })]);
   * ```
   */
  static async connect(options: ConnectOptions = {}): Promise<Client> {
    const address = await discover(options);
    const near = options.fetch === undefined ? await nearServer(address.url) : undefined;
    return new Client({ ...address, near }, options);
  }

  /**
   * The same server; every request says what its sender holds at that moment, on top of what it said before.
   *
   * @internal
   */
  carrying(held: () => Carries): Client {
    const { url, patienceMs } = this;
    const both = (): Carries => {
      const [before, { turn = before.turn, claim = before.claim }] = [this.#carried(), held()];
      return { turn, claim };
    };
    const how = {
      fetch: this.#fetch,
      WebSocket: this.#WebSocket,
      patienceMs,
      traceparent: this.#traceparent,
    };
    const carrying = new Client({ url, token: this.#token, near: this.#near }, how, both);
    carrying.#answered = this.#answered;
    return carrying;
  }

  /**
   * Sends a request and reads its JSON answer.
   *
   * @example
   * ```ts
   * const { body } = await client.json<{ providers: object[] }>({ method: "GET", path: "/v1/providers", again: "safe" });
   * ```
   */
  json<T>(call: Call): Promise<Answer<T>> {
    return this.#send(call, async () => readJson<T>(await this.#whole(call)));
  }

  /**
   * Opens a WebSocket. The token travels among the subprotocols, because a page cannot set a header on one. Whether it
   * opens shows later: a WebSocket never says why it did not.
   *
   * @internal
   */
  webSocket(path: string, query: Record<string, string | number | boolean | undefined>): WebSocket {
    const url = this.#urlOf({ path, query }).replace(/^http/, "ws");
    const protocols = terminalSubprotocols({ bearer: this.#token, ...this.#carried() });
    return new (this.needWebSocket())(url, protocols);
  }

  /**
   * Asked before anything is started that could then not be reached.
   *
   * @internal
   */
  needWebSocket(): NewWebSocket {
    if (this.#WebSocket !== undefined) return this.#WebSocket;
    throw new HoldfastError("unsupported", "this runtime has no WebSocket, which a terminal needs", {
      hint: "Use Node 22 or newer, Node 20 with --experimental-websocket, Bun or a browser; or give one in `WebSocket`.",
      started: "no",
    });
  }

  /**
   * Sends a request whose answer is a stream; the caller reads or cancels its body.
   *
   * @example
   * ```ts
   * const response = await client.open({ method: "GET", path: "/openapi.json", again: "safe" });
   * console.log(await response.text());
   * ```
   */
  open(call: Call): Promise<Response> {
    return this.#send(call, async () => this.#succeeded(await this.#stream(call)));
  }

  async #send<T>(call: Call, once: () => Promise<T>): Promise<T> {
    const patience = new Patience(this.patienceMs);
    for (;;) {
      try {
        return await this.#once(call, once);
      } catch (error) {
        if (!this.#mayRepeat(call, error)) throw error;
        await patience.pause(error, call.signal);
      }
    }
  }

  async #once<T>(call: Call, once: () => Promise<T>): Promise<T> {
    call.signal?.throwIfAborted();
    try {
      return await once();
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason;
      throw error instanceof HoldfastError ? error : failureOfConnection(error, this.url);
    }
  }

  /** What may be sent again goes the shorter way, where there is one: if that leads nowhere, there is still the other. */
  async #whole(call: Call): Promise<Answered> {
    const question = this.#nearQuestion(call);
    const answer = question && (await this.#near?.ask(question));
    return this.#succeeded(answer ?? (await this.#far(call)));
  }

  async #stream(call: Call): Promise<Response> {
    const question = this.#nearQuestion(call);
    const answer = question && (await this.#near?.open(question));
    return answer ?? (await this.#far(call));
  }

  #nearQuestion(call: Call): NearQuestion | undefined {
    const { method, signal, again, json, body } = call;
    if (this.#near === undefined || again !== "safe" || body !== undefined) return undefined;
    return { method, url: this.#urlOf(call), headers: this.#headers(call), body: textOf(json), signal };
  }

  async #far(call: Call): Promise<Response> {
    return this.#fetch(this.#urlOf(call), this.#init(call, await sendable(call.body)));
  }

  async #succeeded<Some extends Answered>(answered: Some): Promise<Some> {
    this.#answered = true;
    if (answered.ok) return answered;
    throw await failureOfAnswer(answered, this.url);
  }

  #mayRepeat(call: Call, error: unknown): boolean {
    if (!(error instanceof HoldfastError) || error.code !== "unavailable" || call.again !== "safe")
      return false;
    return this.#answered || !mayNotBeThere(error);
  }

  #urlOf(call: Pick<Call, "path" | "query">): string {
    if (call.query === undefined) return this.url + call.path;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query)) {
      if (value !== undefined) query.set(name, String(value));
    }
    if (query.size === 0) return this.url + call.path;
    return `${this.url}${call.path}${call.path.includes("?") ? "&" : "?"}${query}`;
  }

  #headers(call: Call): Record<string, string> {
    const { turn, claim } = this.#carried();
    const traceparent = this.#traceparent?.();
    return {
      ...(traceparent !== undefined && { traceparent }),
      ...(turn !== undefined && { "Holdfast-Turn": turn }),
      ...(claim !== undefined && { "Holdfast-Claim": claim }),
      ...call.headers,
      ...(this.#token !== undefined && { Authorization: `Bearer ${this.#token}` }),
      ...(call.json !== undefined && { "Content-Type": "application/json" }),
      ...(call.body !== undefined && { "Content-Type": "application/octet-stream" }),
    };
  }

  #init(call: Call, bytes: Call["body"]): RequestInit {
    const body = textOf(call.json) ?? bytes;
    return {
      method: call.method,
      headers: this.#headers(call),
      ...(body !== undefined && { body: body as BodyInit }),
      // Node wants to be told that the answer may come before the end of a stream that we send.
      ...(body instanceof ReadableStream && ({ duplex: "half" } as object)),
      ...(call.signal !== undefined && { signal: call.signal }),
    };
  }
}

/** What is read of a response. */
export type Answered = Pick<Response, "ok" | "status" | "text"> & {
  readonly headers: { get(name: string): string | null };
};

function textOf(json: unknown): string | undefined {
  return json === undefined ? undefined : JSON.stringify(json);
}

/** A browser sends no stream to a server without HTTP/2: there it is gathered first, which may be on its disk. */
async function sendable(body: Call["body"]): Promise<Call["body"]> {
  return body instanceof ReadableStream && pageOrigin() !== undefined
    ? await new Response(body).blob()
    : body;
}

async function readJson<T>(response: Answered): Promise<Answer<T>> {
  const text = await response.text();
  return {
    status: response.status,
    body: parseJson(text) as T,
    generation: Number(response.headers.get("Holdfast-Generation") ?? 0),
    continuity: (response.headers.get("Holdfast-Continuity") ?? "fresh") as Continuity,
  };
}

function parseJson(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HoldfastError("internal", "the server's answer is not JSON", {
      cause,
      hint: "Check that HOLDFAST_URL points to a Holdfast server.",
      started: "unknown",
    });
  }
}
