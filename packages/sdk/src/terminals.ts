import type {
  Command,
  TerminalCreated,
  TerminalExit,
  Terminal as TerminalInfo,
  TerminalRequest,
} from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { Patience } from "./backoff.ts";
import { makeId } from "./ids.ts";
import { type Conditions, conditionHeaders, type Scope, type Waiting, whileHeld } from "./scope.ts";
import { type ConnectionChange, TerminalLink } from "./terminal-link.ts";
import type { TerminalEvent } from "./terminal-output.ts";

/** How to look at a terminal. */
export interface AttachOptions {
  /** Watch only: neither `write` nor `resize`, and the program does not wait for a slow reader. */
  readonly?: boolean | undefined;
  /** The offset to begin at. Default: 0, the oldest that is still there. */
  since?: number | undefined;
  /** Aborting detaches; the program goes on. */
  signal?: AbortSignal | undefined;
}

/** What runs on a terminal, and how to look at it. */
export interface TerminalOptions extends TerminalRequest, AttachOptions, Conditions {}

/**
 * A program on a terminal of its own in the sandbox. It lives on when this handle is closed, and when its server is
 * restarted; a connection that breaks is made again by itself, from the next byte on.
 *
 * @example
 * ```ts
 * const term = await sbx.terminal({ id: "main", cols: 120, rows: 40 });
 * await term.write("npm test; exit\r");
 * for await (const event of term) if (event.type === "output") screen.write(event.bytes);
 * console.log((await term.exited).exitCode);
 * ```
 */
export class Terminal implements AsyncIterable<TerminalEvent>, AsyncDisposable {
  readonly terminalId: string;
  /** Names this PTY: the id may get another one after the program has ended. */
  readonly ptyId: string;
  /** Whether this call started the program, or found it running. */
  readonly created: boolean;
  readonly command: Command;
  /** How the program ended. Rejects if that can no longer be known from here. */
  readonly exited: Promise<TerminalExit>;
  readonly #link: TerminalLink;
  readonly #path: string;
  readonly #scope: Scope;

  /** @internal */
  constructor({ scope, made, link }: { scope: Scope; made: TerminalCreated; link: TerminalLink }) {
    this.terminalId = made.terminalId;
    this.ptyId = made.ptyId;
    this.created = made.created;
    this.command = made.command;
    this.#scope = scope;
    this.#path = terminalPath(scope, made.terminalId);
    this.#link = link;
    this.exited = link.exited;
  }

  /** The size as it is now, whoever set it. */
  get size(): { cols: number; rows: number } {
    return this.#link.size;
  }

  /**
   * Everything that is known about it now.
   *
   * @example
   * ```ts
   * const { viewers, nextOffset } = await term.info();
   * ```
   */
  async info(options: Waiting = {}): Promise<TerminalInfo> {
    return getTerminalInfo(this.#scope, this.terminalId, options);
  }

  /**
   * Types. Resolves when it was sent, which waits while the connection is being made again and while the program does
   * not read. What was on its way when a connection broke may be lost, and is never typed twice.
   *
   * @example
   * ```ts
   * await term.write("ls\r");
   * await term.write("\x03");   // Ctrl-C
   * ```
   */
  write(data: string | Uint8Array): Promise<void> {
    return this.#link.write(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  /**
   * Sets the size, for every viewer.
   *
   * @example
   * ```ts
   * await term.resize(120, 40);
   * ```
   */
  async resize(cols: number, rows: number): Promise<void> {
    this.#link.resize({ cols, rows });
  }

  /**
   * Calls back when anybody changed the size. Returns a function that ends that.
   *
   * @example
   * ```ts
   * const stop = term.onResize(({ cols, rows }) => screen.resize(cols, rows));
   * ```
   */
  onResize(listener: (size: { cols: number; rows: number }) => void): () => void {
    return this.#link.onResize.add(listener);
  }

  /**
   * Calls back when the connection is lost and when it is back. Returns a function that ends that.
   *
   * @example
   * ```ts
   * const stop = term.onConnection((change) => console.log("connection", change));
   * ```
   */
  onConnection(listener: (change: ConnectionChange) => void): () => void {
    return this.#link.onConnection.add(listener);
  }

  /**
   * The output, from where it was last read; ends when the program has ended or the terminal was closed. A slow reader
   * slows the program; without any reader the newest 256 KiB are kept and the rest is told as `truncated`.
   */
  [Symbol.asyncIterator](): AsyncGenerator<TerminalEvent> {
    return this.#link.output.read();
  }

  /**
   * Detaches. The program goes on, and the terminal can be had again by its id. May be called twice.
   *
   * @example
   * ```ts
   * await term.close();
   * ```
   */
  async close(): Promise<void> {
    this.#link.close();
  }

  /**
   * Ends the program with everything it started, and forgets the terminal.
   *
   * @example
   * ```ts
   * const { exit } = await term.destroy();
   * ```
   */
  async destroy({ signal }: Waiting = {}): Promise<TerminalInfo> {
    const call = { method: "DELETE", path: this.#path, again: "never", signal } as const;
    return (await this.#scope.client.json<TerminalInfo>(call)).body;
  }

  /** `await using` detaches; it never ends the program. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Gets or creates a terminal and attaches to it. */
export async function openTerminal(scope: Scope, options: TerminalOptions = {}): Promise<Terminal> {
  scope.client.needWebSocket();
  const { readonly, since, ifGeneration, ifContinuity, signal, ...request } = options;
  const { body } = await scope.client.json<TerminalCreated>({
    method: "POST",
    path: `${scope.path}/terminals`,
    // With an id it is get-or-create; without one a lost answer would leave a second terminal behind.
    json: { ...request, id: request.id ?? makeId("term") },
    headers: conditionHeaders({ ifGeneration, ifContinuity }),
    again: "safe",
    signal,
  });
  return attach(scope, body, { readonly, since, signal });
}

/** Attaches to a terminal that is there, running or ended; `not_found` if there is none. Creates nothing. */
export async function attachTerminal(
  scope: Scope,
  terminalId: string,
  options: AttachOptions = {},
): Promise<Terminal> {
  scope.client.needWebSocket();
  const info = await getTerminalInfo(scope, terminalId, options);
  return attach(scope, { ...info, created: false }, options);
}

export async function listTerminals(scope: Scope, { signal }: Waiting): Promise<TerminalInfo[]> {
  const call = { method: "GET", path: `${scope.path}/terminals`, again: "safe", signal } as const;
  return (await scope.client.json<{ terminals: TerminalInfo[] }>(call)).body.terminals;
}

async function getTerminalInfo(scope: Scope, terminalId: string, { signal }: Waiting): Promise<TerminalInfo> {
  const call = { method: "GET", path: terminalPath(scope, terminalId), again: "safe", signal } as const;
  return (await scope.client.json<TerminalInfo>(call)).body;
}

function terminalPath(scope: Scope, terminalId: string): string {
  return `${scope.path}/terminals/${encodeURIComponent(terminalId)}`;
}

async function attach(scope: Scope, made: TerminalCreated, options: AttachOptions): Promise<Terminal> {
  const path = `${terminalPath(scope, made.terminalId)}/connect`;
  const link = new TerminalLink({
    openSocket: (query) => scope.client.webSocket(path, query),
    check: (signal) => throwRefusal({ scope, path, readonly: options.readonly, signal }),
    patience: new Patience(scope.client.patienceMs),
    serverUrl: scope.client.url,
    lifetime: whileHeld(scope, options.signal),
    readonly: options.readonly ?? false,
    ptyId: made.ptyId,
    since: options.since ?? 0,
    size: { cols: made.cols, rows: made.rows },
  });
  await link.attached();
  return new Terminal({ scope, made, link });
}

/** A WebSocket never says why it was refused; the same request without one is refused in words. */
async function throwRefusal(of: {
  scope: Scope;
  path: string;
  readonly: boolean | undefined;
  signal: AbortSignal;
}): Promise<void> {
  const { scope, path, readonly, signal } = of;
  try {
    await scope.client.json({ method: "GET", path, query: { readonly }, again: "safe", signal });
  } catch (error) {
    // All that was wrong is that it was not a WebSocket.
    if (!(error instanceof HoldfastError && error.details?.upgrade === "websocket")) throw error;
  }
}
