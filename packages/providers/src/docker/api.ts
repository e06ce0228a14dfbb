import { tmpdir } from "node:os";
import { HoldfastError } from "@holdfast/protocol";
import { refused, timedOut, unreachable } from "./errors.ts";
import { type Hijacked, hijack } from "./hijack.ts";
import { linesOf } from "./json-lines.ts";
import { type Transport, type TransportOptions, transportOf } from "./transport.ts";

/** One request to the daemon. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the version, such as `/containers/json`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly tar?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Failures that are an answer, such as a 404 for "is it there?". Every other one is thrown. */
  readonly expect?: readonly number[];
  readonly signal: AbortSignal;
  /** For the whole answer; of a stream, until it begins. */
  readonly timeoutMs?: number;
}

export interface Answer {
  readonly status: number;
  readonly bytes: Uint8Array;
}

/** Nothing that we ask of a daemon takes longer than a few seconds; one that does not answer by then hangs. */
const TIMEOUT_MS = 30_000;
/** What we speak. 1.41 is Docker 20.10; daemons of 2025 refuse anything below 1.44. */
const OLDEST = "1.41";
const NEWEST = "1.44";

/** The Engine API of Docker. */
export class DockerApi {
  readonly #transport: Transport;
  #version: Promise<string> | undefined;

  /** `host` as in DOCKER_HOST. */
  constructor(host: string, options: Partial<TransportOptions> = {}) {
    this.#transport = transportOf({ runDir: tmpdir(), ...options, host });
  }

  /** The answer as JSON, or `undefined` where the daemon answered with a status that was expected. */
  async json<T>(call: Call): Promise<T | undefined> {
    const { status, bytes } = await this.request(call);
    if (status >= 400) return undefined;
    return parse<T>(bytes, call.path);
  }

  async request(call: Call): Promise<Answer> {
    const answer = await this.#whole(`/v${await this.#negotiated(call.signal)}`, call);
    if (answer.status < 400 || call.expect?.includes(answer.status)) return answer;
    throw refused(call, answer);
  }

  /**
   * The answer as it comes, for as long as it comes: there is no time by which it must be over, and `signal` or the
   * end of the loop that reads it closes the connection. One that breaks off is an error, not an end.
   */
  async *stream(call: Call): AsyncGenerator<Uint8Array, void, void> {
    const over = new AbortController();
    try {
      const prefix = `/v${await this.#negotiated(call.signal)}`;
      const response = await this.#begin(prefix, call, over.signal);
      if (response.status >= 400) throw refused(call, await this.#read(response, call));
      if (response.body !== null) yield* this.#pieces(response.body, call);
    } finally {
      over.abort();
    }
  }

  /** A stream of JSON values, one a line: events, or the progress of a pull. */
  lines<T>(call: Call): AsyncGenerator<T, void, void> {
    return linesOf<T>(this.stream(call), (line) => parse<T>(line, call.path));
  }

  /** A connection of the caller's own, after the answer to a POST that gives it away. */
  async hijack(call: Pick<Call, "path" | "json" | "signal">): Promise<Hijacked> {
    const path = `/v${await this.#negotiated(call.signal)}${call.path}`;
    try {
      return await hijack(await this.#transport.target(), { json: {}, ...call, path });
    } catch (error) {
      throw error instanceof HoldfastError ? error : this.#broken(error, call);
    }
  }

  /** A failure is not remembered, and neither is a daemon that went away: another version may come back. */
  #negotiated(signal: AbortSignal): Promise<string> {
    this.#version ??= this.#negotiate(signal).catch((error: unknown) => {
      this.#version = undefined;
      throw error;
    });
    return this.#version;
  }

  async #negotiate(signal: AbortSignal): Promise<string> {
    const call = { method: "GET", path: "/version", signal } as const;
    const answer = await this.#whole("", call);
    if (answer.status !== 200) throw refused(call, answer);
    type Versions = { ApiVersion?: string; MinAPIVersion?: string };
    const { ApiVersion = "0", MinAPIVersion = "0" } = parse<Versions>(answer.bytes, call.path);
    return chooseVersion({ newest: ApiVersion, oldest: MinAPIVersion });
  }

  async #whole(prefix: string, call: Call): Promise<Answer> {
    const timeout = AbortSignal.timeout(call.timeoutMs ?? TIMEOUT_MS);
    try {
      const response = await this.#begin(prefix, call, timeout);
      return await this.#read(response, call);
    } catch (error) {
      throw timeout.aborted && !call.signal.aborted ? timedOut(call, error) : error;
    }
  }

  /** Returns when the answer begins. `over` ends it, whether it has begun or not. */
  async #begin(prefix: string, call: Call, over: AbortSignal): Promise<Response> {
    const { method, path, query, signal } = call;
    signal.throwIfAborted();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), call.timeoutMs ?? TIMEOUT_MS);
    const { url, ...way } = await this.#transport.target();
    try {
      return await fetch(`${url}${prefix}${path}?${new URLSearchParams(query)}`, {
        ...{ keepalive: false, ...way, method, timeout: false, redirect: "manual" },
        signal: AbortSignal.any([signal, over, late.signal]),
        ...bodyOf(call),
      });
    } catch (cause) {
      if (late.signal.aborted && !signal.aborted) throw timedOut(call, cause);
      throw this.#broken(cause, call);
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(response: Response, call: Call): Promise<Answer> {
    try {
      return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
    } catch (cause) {
      throw this.#broken(cause, call);
    }
  }

  async *#pieces(body: ReadableStream<Uint8Array>, call: Call): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const piece of body) yield piece;
    } catch (cause) {
      throw this.#broken(cause, call);
    }
  }

  #broken(cause: unknown, { signal }: Pick<Call, "signal">): unknown {
    if (signal.aborted) return signal.reason;
    this.#version = undefined;
    return this.#transport.explain() ?? unreachable(this.#transport.host, cause);
  }
}

function parse<T>(bytes: Uint8Array | string, path: string): T {
  try {
    return JSON.parse(typeof bytes === "string" ? bytes : new TextDecoder().decode(bytes)) as T;
  } catch (cause) {
    throw new HoldfastError("unavailable", `Docker's answer to ${path} makes no sense`, {
      hint: "It was cut off, or something else answers on its socket. Nothing was concluded from it.",
      cause,
    });
  }
}

function bodyOf({ json, tar, headers }: Call): {
  body?: string | NonNullable<Call["tar"]>;
  headers: Record<string, string>;
} {
  if (tar !== undefined) return { body: tar, headers: { ...headers, "Content-Type": "application/x-tar" } };
  if (json === undefined) return { headers: { ...headers } };
  return { body: JSON.stringify(json), headers: { ...headers, "Content-Type": "application/json" } };
}

/** The newest that both sides speak. */
export function chooseVersion(daemon: { newest: string; oldest: string }): string {
  const chosen = isBefore(daemon.newest, NEWEST) ? daemon.newest : NEWEST;
  if (!isBefore(chosen, OLDEST) && !isBefore(chosen, daemon.oldest)) return chosen;
  throw new HoldfastError(
    "provider_unavailable",
    `this Docker speaks version ${daemon.oldest} to ${daemon.newest} of its API, and we ${OLDEST} to ${NEWEST}`,
    { hint: "Use Docker 20.10 or newer, or a newer Holdfast." },
  );
}

function isBefore(a: string, b: string): boolean {
  const [aMajor = 0, aMinor = 0] = a.split(".").map(Number);
  const [bMajor = 0, bMinor = 0] = b.split(".").map(Number);
  return aMajor === bMajor ? aMinor < bMinor : aMajor < bMajor;
}
