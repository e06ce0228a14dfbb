import { HoldfastError } from "@holdfast/protocol";
import { refused, timedOut, unreachable } from "./errors.ts";

/** One request to the daemon. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the version, such as `/containers/json`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly tar?: Uint8Array<ArrayBuffer>;
  /** Failures that are an answer, such as a 404 for "is it there?". Every other one is thrown. */
  readonly expect?: readonly number[];
  readonly signal: AbortSignal;
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

/** The Engine API of Docker, over the unix socket of a daemon on this machine. Keeps no connection. */
export class DockerApi {
  readonly #socket: string;
  #version: Promise<string> | undefined;

  /** `host` as in DOCKER_HOST. */
  constructor(host: string) {
    this.#socket = socketOf(host);
  }

  /** The answer as JSON, or `undefined` where the daemon answered with a status that was expected. */
  async json<T>(call: Call): Promise<T | undefined> {
    const { status, bytes } = await this.request(call);
    if (status >= 400) return undefined;
    return parse<T>(bytes, call.path);
  }

  async request(call: Call): Promise<Answer> {
    const answer = await this.#send(`/v${await this.#negotiated(call.signal)}`, call);
    if (answer.status < 400 || call.expect?.includes(answer.status)) return answer;
    throw refused(call, answer);
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
    const answer = await this.#send("", call);
    if (answer.status !== 200) throw refused(call, answer);
    type Versions = { ApiVersion?: string; MinAPIVersion?: string };
    const { ApiVersion = "0", MinAPIVersion = "0" } = parse<Versions>(answer.bytes, call.path);
    return chooseVersion({ newest: ApiVersion, oldest: MinAPIVersion });
  }

  async #send(prefix: string, call: Call): Promise<Answer> {
    const { method, path, query, signal } = call;
    signal.throwIfAborted();
    const timeout = AbortSignal.timeout(call.timeoutMs ?? TIMEOUT_MS);
    try {
      const response = await fetch(`http://docker${prefix}${path}?${new URLSearchParams(query)}`, {
        unix: this.#socket,
        method,
        signal: AbortSignal.any([signal, timeout]),
        keepalive: false,
        ...bodyOf(call),
      });
      return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
    } catch (cause) {
      signal.throwIfAborted();
      this.#version = undefined;
      throw timeout.aborted ? timedOut(call, cause) : unreachable(this.#socket, cause);
    }
  }
}

function parse<T>(bytes: Uint8Array, path: string): T {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as T;
  } catch (cause) {
    throw new HoldfastError("unavailable", `Docker's answer to ${path} makes no sense`, {
      hint: "It was cut off, or something else answers on its socket. Nothing was concluded from it.",
      cause,
    });
  }
}

function bodyOf({ json, tar }: Call): {
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
} {
  if (tar !== undefined) return { body: tar, headers: { "Content-Type": "application/x-tar" } };
  if (json === undefined) return {};
  return { body: JSON.stringify(json), headers: { "Content-Type": "application/json" } };
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

function socketOf(host: string): string {
  const path = /^unix:\/\/(\/.+)$/.exec(host)?.[1];
  if (path !== undefined) return path;
  throw new HoldfastError("unsupported", `Docker cannot be reached by ${host}`, {
    hint: "Give the socket of a daemon on this machine: unix:///var/run/docker.sock",
  });
}
