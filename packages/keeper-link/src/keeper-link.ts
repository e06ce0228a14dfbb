import { type Ears, Garbled, Lines, type Reply, type StreamedReply, Unanswered } from "@holdfast/lines";
import {
  type AdmitMessage,
  AdmitRequest,
  CLAIM_FENCE_HEADER,
  type ClaimFenceRequest,
  FENCE_HEADER,
  HoldfastError,
  KeeperInfo,
  ListeningPorts,
  PROTOCOL_VERSION,
  QuiesceAnswer,
  type QuiesceRequest,
  SandboxActivity,
} from "@holdfast/protocol";
import { z } from "zod";
import { garbled, lost, unsupported, wrongVersion } from "./failures.ts";
import { PortConnection } from "./port-connection.ts";
import { openUnixWire } from "./unix-wire.ts";
import { type Watch, watchKeeper } from "./watch.ts";

/** Of what answers a stream, or refuses one: a few hundred bytes, but the workload can make the keeper say anything. */
const MAX_TEXT_BYTES = 1024 * 1024;

/** A keeper never closes a connection by itself. */
const KEPT_MS = 30_000;

/** How long a keeper may take to say who it is. It answers in under a millisecond unless its machine is drowning. */
const GREETING_TIMEOUT_MS = 5_000;

export interface KeeperLinkOptions {
  /** The keeper's socket, as the provider observed it. */
  readonly socketPath: string;
  readonly secret: string;
  readonly fence: number;
  /** Around every request, for whoever watches: it may add headers, and must send exactly once. */
  readonly around?: AroundCall | undefined;
}

export type AroundCall = <Reply extends { readonly headers: { get(name: string): string | null } }>(
  call: Pick<KeeperCall, "method" | "path">,
  send: (headers: Record<string, string>) => Promise<Reply>,
) => Promise<Reply>;

export interface KeeperCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With the query, after `/v1`. */
  readonly path: string;
  readonly body?: BodyInit;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** The caller's claim on the sandbox, if it has one. */
  readonly claimFence?: number;
}

const Nothing = z.undefined();

/** The server's line to one keeper. A connection that is not used closes by itself; `watch` holds one. */
export class KeeperLink {
  readonly #options: KeeperLinkOptions;
  readonly #lines: Lines;

  constructor(options: KeeperLinkOptions) {
    this.#options = options;
    const open = (ears: Ears) => openUnixWire(options.socketPath, ears);
    this.#lines = new Lines({ open, host: "keeper", keptMs: KEPT_MS });
  }

  async info(): Promise<KeeperInfo> {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    const info = await this.json({ method: "GET", path: "/keeper", signal }, KeeperInfo);
    if (major(info.protocolVersion) !== major(PROTOCOL_VERSION)) throw wrongVersion(info.protocolVersion);
    return info;
  }

  /**
   * Opens the keeper's gate, and says how long it is to live. May be said again. A keeper that is too old to know of a
   * policy is admitted without.
   */
  async admit(message: AdmitMessage): Promise<void> {
    const request = AdmitRequest.parse(message);
    try {
      await this.#post("/admit", request, KeeperInfo);
    } catch (error) {
      // What we sent is in order, so it is more than this keeper knows.
      if (!(error instanceof HoldfastError) || error.code !== "invalid_argument") throw error;
      const { instanceId, generation, fence } = request;
      await this.#post("/admit", { instanceId, generation, fence }, KeeperInfo);
    }
  }

  /**
   * Holds a connection: we learn of the keeper's end at once, and as long as it is held the keeper knows that it has a
   * server. `onEnd` is called once, unless `close` came first. For an admitted keeper.
   */
  watch({ onEnd }: { onEnd: () => void }): Promise<Watch> {
    const timeoutMs = GREETING_TIMEOUT_MS;
    return watchKeeper({ socketPath: this.#options.socketPath, headers: this.#headers(), timeoutMs, onEnd });
  }

  /** Asks the keeper to take no more work if it has been idle for a lifetime. It lapses after 10 s. */
  quiesce(request: QuiesceRequest): Promise<QuiesceAnswer> {
    return orUnsupported("say whether it is idle", this.#post("/quiesce", request, QuiesceAnswer));
  }

  /** Takes a `quiesce` back. May be said again. */
  async resume(): Promise<void> {
    await orUnsupported("be resumed", this.#post("/resume", {}, Nothing));
  }

  /** Counts as use. */
  touch({ claimFence }: { claimFence?: number } = {}): Promise<SandboxActivity> {
    const claim = claimFence === undefined ? {} : { claimFence };
    return orUnsupported("be touched", this.#post("/touch", {}, SandboxActivity, claim));
  }

  /** A look: what holds the sandbox awake, and for how long nothing has. */
  activity(): Promise<SandboxActivity> {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    const asked = this.json({ method: "GET", path: "/activity", signal }, SandboxActivity);
    return orUnsupported("say what holds it awake", asked);
  }

  /** From now on work under a lower claim is refused; with `required`, also work under none. */
  async claimFence(request: ClaimFenceRequest): Promise<void> {
    await orUnsupported("be claimed", this.#post("/claim-fence", request, Nothing));
  }

  /** A reply whose shape is checked, because what comes out of a sandbox is as trustworthy as the sandbox. */
  async json<T>(call: KeeperCall, shape: z.ZodType<T>): Promise<T> {
    return (await this.reply(call, shape)).body;
  }

  /** The same, with the status, where that tells something. */
  async reply<T>(call: KeeperCall, shape: z.ZodType<T>): Promise<{ status: number; body: T }> {
    const { status, text } = await this.#whole(call);
    if (status >= 300) throw refusal(status, text);
    const parsed = shape.safeParse(parseOr(text));
    if (!parsed.success) throw garbled(parsed.error.message);
    return { status, body: parsed.data };
  }

  /** The reply as it streams. Throws what the keeper refused, and `keeper_lost` if it could not be reached. */
  async send(call: KeeperCall): Promise<StreamedReply> {
    const reply = await this.#around(call, (more) => this.#begin(call, more));
    if (reply.status < 300) return reply;
    throw refusal(reply.status, await boundedText(reply));
  }

  /** A WebSocket to the keeper. What it refuses shows as the socket's close. */
  webSocket(path: string, protocols: string[], claim: Pick<KeeperCall, "claimFence"> = {}): WebSocket {
    const { socketPath } = this.#options;
    const headers = this.#headers(claim);
    // Bun takes headers and a unix socket; the web's own types know neither.
    const options = { headers, protocols } as unknown as string[];
    return new WebSocket(`ws+unix://${socketPath}:/v1${path}`, options);
  }

  /**
   * Connects to a port inside, wherever the program listens: `wrong_state` if none does, `quiesced` if the instance is
   * about to be stopped. It needs no claim: whoever exposed the port had the right to.
   */
  async connectPort(port: number): Promise<PortConnection> {
    try {
      return await PortConnection.open(this.webSocket(`/ports/${port}/connect`, []));
    } catch (error) {
      // A socket whose upgrade was refused does not say why; the same keeper answers this for the same reasons.
      if (error instanceof HoldfastError && error.code === "keeper_lost") await this.listeningPorts();
      throw error;
    }
  }

  /** A look: the ports that something inside listens on. */
  async listeningPorts(): Promise<number[]> {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    const asked = this.json({ method: "GET", path: "/ports", signal }, ListeningPorts);
    return (await orUnsupported("show or reach ports", asked)).ports;
  }

  #post<T>(path: string, body: object, shape: z.ZodType<T>, claim: Pick<KeeperCall, "claimFence"> = {}) {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    return this.json({ method: "POST", path, body: JSON.stringify(body), signal, ...claim }, shape);
  }

  #headers({ claimFence }: Pick<KeeperCall, "claimFence"> = {}): Record<string, string> {
    const { secret, fence } = this.#options;
    return {
      Authorization: `Bearer ${secret}`,
      [FENCE_HEADER]: String(fence),
      ...(claimFence !== undefined && { [CLAIM_FENCE_HEADER]: String(claimFence) }),
    };
  }

  #around<Reply extends { readonly headers: { get(name: string): string | null } }>(
    call: Pick<KeeperCall, "method" | "path">,
    send: (more: Record<string, string>) => Promise<Reply>,
  ): Promise<Reply> {
    const { around } = this.#options;
    return around === undefined ? send({}) : around(call, send);
  }

  /** What is sent as it comes is left to `fetch`; all else is asked over a line. */
  async #whole(call: KeeperCall): Promise<Pick<Reply, "status" | "text">> {
    if (isAtHand(call)) return this.#around(call, (more) => this.#ask("ask", call, more));
    const reply = await this.#around(call, (more) => this.#fetch(call, more));
    return { status: reply.status, text: await boundedText(reply) };
  }

  #begin(call: KeeperCall, more: Record<string, string>): Promise<StreamedReply> {
    return isAtHand(call) ? this.#ask("stream", call, more) : this.#fetch(call, more);
  }

  async #ask<How extends "ask" | "stream">(
    how: How,
    call: CallAtHand,
    more: Record<string, string>,
  ): Promise<Awaited<ReturnType<Lines[How]>>> {
    const { method, path, body, signal } = call;
    const headers = { ...more, ...call.headers, ...this.#headers(call) };
    const question = { method, path: `/v1${path}`, headers, body, signal };
    try {
      return (await this.#lines[how](question)) as Awaited<ReturnType<Lines[How]>>;
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      if (cause instanceof Garbled) throw garbled(cause.message);
      if (!(cause instanceof Unanswered)) throw cause;
      throw lost(cause, method === "GET" && cause.wasHeard === "unknown" ? "no" : cause.wasHeard);
    }
  }

  async #fetch(call: KeeperCall, more: Record<string, string>): Promise<Response> {
    const { method, path, body, headers, signal } = call;
    const { socketPath } = this.#options;
    try {
      return await fetch(`http://keeper/v1${path}`, {
        unix: socketPath,
        method,
        headers: { ...more, ...headers, ...this.#headers(call) },
        ...(body !== undefined && { body }),
        ...(signal !== undefined && { signal }),
        // A command may be silent for hours: its own timeout ends it, not ours.
        timeout: false,
        // A log passes through as it is; unpacking it would only cost.
        decompress: false,
      } as BunFetchRequestInit);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      throw lost(cause, method === "GET" ? "no" : "unknown");
    }
  }
}

/** A call that can be sent in one piece. */
type CallAtHand = Omit<KeeperCall, "body"> & { readonly body?: string };

function isAtHand(call: KeeperCall): call is CallAtHand {
  return call.body === undefined || typeof call.body === "string";
}

/** These routes have nothing that could be missing but themselves. */
async function orUnsupported<T>(what: string, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof HoldfastError && error.code === "not_found" ? unsupported(what, error) : error;
  }
}

function refusal(status: number, text: string): HoldfastError {
  return HoldfastError.fromBody(parseOr(text)) ?? garbled(`status ${status}: ${text.slice(0, 200)}`);
}

async function boundedText(reply: StreamedReply): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of reply.body ?? []) {
      size += chunk.length;
      if (size > MAX_TEXT_BYTES) throw garbled("the reply is too large");
      chunks.push(chunk);
    }
  } catch (cause) {
    throw cause instanceof HoldfastError ? cause : lost(cause, "yes");
  }
  return Buffer.concat(chunks).toString();
}

function parseOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function major(version: string): string | undefined {
  return version.split(".")[0];
}
