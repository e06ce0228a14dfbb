import {
  type AdmitRequest,
  FENCE_HEADER,
  HoldfastError,
  KeeperInfo,
  PROTOCOL_VERSION,
} from "@holdfast/protocol";
import type { z } from "zod";

/** A reply that is not a stream has no business being larger: the workload can make the keeper say anything. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;

/** How long a keeper may take to say who it is. It answers in under a millisecond unless its machine is drowning. */
const GREETING_TIMEOUT_MS = 5_000;

export interface KeeperLinkOptions {
  /** The keeper's socket, as the provider observed it. */
  readonly socketPath: string;
  readonly secret: string;
  readonly fence: number;
}

export interface KeeperCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** With the query, after `/v1`. */
  readonly path: string;
  readonly body?: BodyInit;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** The server's line to one keeper. Holds no connection of its own; `watch` does. */
export class KeeperLink {
  readonly #options: KeeperLinkOptions;

  constructor(options: KeeperLinkOptions) {
    this.#options = options;
  }

  async info(): Promise<KeeperInfo> {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    const info = await this.json({ method: "GET", path: "/keeper", signal }, KeeperInfo);
    if (major(info.protocolVersion) !== major(PROTOCOL_VERSION)) throw wrongVersion(info.protocolVersion);
    return info;
  }

  /** Opens the keeper's gate. May be said again. */
  async admit(request: AdmitRequest): Promise<void> {
    const signal = AbortSignal.timeout(GREETING_TIMEOUT_MS);
    const reply = await this.send({ method: "POST", path: "/admit", body: JSON.stringify(request), signal });
    await reply.body?.cancel();
  }

  /** A reply whose shape is checked, because what comes out of a sandbox is as trustworthy as the sandbox. */
  async json<T>(call: KeeperCall, shape: z.ZodType<T>): Promise<T> {
    return (await this.reply(call, shape)).body;
  }

  /** The same, with the status, where that tells something. */
  async reply<T>(call: KeeperCall, shape: z.ZodType<T>): Promise<{ status: number; body: T }> {
    const reply = await this.send(call);
    const parsed = shape.safeParse(parseOr(await boundedText(reply)));
    if (!parsed.success) throw garbled(parsed.error.message);
    return { status: reply.status, body: parsed.data };
  }

  /** The reply as it streams. Throws what the keeper refused, and `keeper_lost` if it could not be reached. */
  async send(call: KeeperCall): Promise<Response> {
    const reply = await this.#fetch(call);
    if (reply.ok) return reply;
    const text = await boundedText(reply);
    throw HoldfastError.fromBody(parseOr(text)) ?? garbled(`status ${reply.status}: ${text.slice(0, 200)}`);
  }

  /** A WebSocket to the keeper. What it refuses shows as the socket's close. */
  webSocket(path: string, protocols: string[]): WebSocket {
    const { socketPath, secret, fence } = this.#options;
    const headers = { Authorization: `Bearer ${secret}`, [FENCE_HEADER]: String(fence) };
    // Bun takes headers and a unix socket; the web's own types know neither.
    const options = { headers, protocols } as unknown as string[];
    return new WebSocket(`ws+unix://${socketPath}:/v1${path}`, options);
  }

  async #fetch({ method, path, body, headers, signal }: KeeperCall): Promise<Response> {
    const { socketPath, secret, fence } = this.#options;
    try {
      return await fetch(`http://keeper/v1${path}`, {
        unix: socketPath,
        method,
        headers: { ...headers, Authorization: `Bearer ${secret}`, [FENCE_HEADER]: String(fence) },
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

async function boundedText(reply: Response): Promise<string> {
  const length = Number(reply.headers.get("content-length") ?? Number.NaN);
  try {
    if (length <= MAX_REPLY_BYTES) return await reply.text();
    return await countedText(reply);
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause;
    throw lost(cause, "yes");
  }
}

/** For a reply that does not say how long it is, or says too much. */
async function countedText(reply: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of reply.body ?? []) {
    size += chunk.length;
    if (size > MAX_REPLY_BYTES) throw garbled("the reply is too large");
    chunks.push(chunk);
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

function lost(cause: unknown, started: "no" | "yes" | "unknown"): HoldfastError {
  return new HoldfastError("keeper_lost", "the sandbox's keeper went away in the middle of the call", {
    cause,
    started,
    retryable: true,
    hint:
      started === "no"
        ? "nothing was started: try again"
        : "ask for the command by its id to see what became of it before you run it again",
  });
}

function garbled(detail: string): HoldfastError {
  return new HoldfastError("internal", "the sandbox's keeper gave an answer that makes no sense", {
    details: { detail: detail.slice(0, 1000) },
    started: "unknown",
    hint: "the workload may have tampered with its keeper: look at the timeline, or recreate the sandbox",
  });
}

function wrongVersion(found: string): HoldfastError {
  return new HoldfastError(
    "unsupported",
    `the keeper speaks protocol ${found}, this server ${PROTOCOL_VERSION}`,
    {
      hint: "stop the sandbox and use it again: it comes back with this version's keeper and its files",
    },
  );
}
