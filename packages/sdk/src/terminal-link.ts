import type { TerminalExit } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import type { ToViewer } from "@holdfast/protocol/terminal-socket";
import { type Patience, sleep } from "./backoff.ts";
import { failureOfConnection } from "./failures.ts";
import { Gate } from "./gate.ts";
import { Listeners } from "./listeners.ts";
import { type ConnectionEnd, TerminalConnection } from "./terminal-connection.ts";
import { TerminalOutput } from "./terminal-output.ts";

/** `lost`: the connection broke and is being made again. `back`: it is there again, from the next byte on. */
export type ConnectionChange = "lost" | "back";

type SocketQuery = Record<string, string | number | boolean | undefined>;

export interface LinkOptions {
  openSocket(query: SocketQuery): WebSocket;
  /** Resolves if the terminal is there; waits while the server is away. A socket that cannot be opened does not say why. */
  check(signal: AbortSignal): Promise<void>;
  readonly patience: Patience;
  readonly serverUrl: string;
  /** Aborting detaches. */
  readonly lifetime: AbortSignal;
  readonly readonly: boolean;
  readonly ptyId: string;
  readonly since: number;
  readonly size: { cols: number; rows: number };
}

// On the way to us at most: enough for a fast line, little enough that Ctrl-C is felt at once.
const WINDOW_BYTES = 256 * 1024;
// Small enough that a key typed meanwhile does not wait long behind a paste.
const WRITE_BYTES = 32 * 1024;
// What may wait in the runtime, which would take any amount.
const UNSENT_BYTES = 256 * 1024;

/** A viewer's line to its terminal, made again whenever it breaks, until the program ends or somebody closes it. */
export class TerminalLink {
  readonly output = new TerminalOutput((offset) => this.#connection?.say({ type: "ack", offset }));
  readonly onResize = new Listeners<{ cols: number; rows: number }>();
  readonly onConnection = new Listeners<ConnectionChange>();
  readonly exited: Promise<TerminalExit>;
  readonly #options: LinkOptions;
  readonly #closed = new AbortController();
  /** Open while what is typed can be sent. */
  readonly #gate = new Gate();
  #state: "new" | "connected" | "lost" = "new";
  #connection: TerminalConnection | undefined;
  #offset: number;
  #size: { cols: number; rows: number };
  #wantedSize: { cols: number; rows: number } | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#offset = options.since;
    this.#size = options.size;
    this.exited = this.#stayConnected();
    // Who does not ask how it ended need not handle that it could not be told.
    this.exited.catch(() => undefined);
    options.lifetime.addEventListener("abort", () => this.close(), { once: true });
  }

  get size(): { cols: number; rows: number } {
    return this.#size;
  }

  /** Resolves once typing reaches the terminal; rejects with why that will never be. */
  async attached(): Promise<void> {
    await Promise.race([this.#gate.opened(), this.exited]);
  }

  /** One after the other, so that two writers' bytes are not mixed. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#options.readonly) throw readOnly("type");
    const written = this.#writing.then(() => this.#writeAll(bytes));
    this.#writing = written.catch(() => undefined);
    return written;
  }

  /** Kept for the next connection, if there is none just now. */
  resize(size: { cols: number; rows: number }): void {
    if (this.#options.readonly) throw readOnly("resize");
    this.#wantedSize = size;
    this.#connection?.say({ type: "resize", ...size });
  }

  close(): void {
    this.#closed.abort(new DOMException("the terminal was closed", "AbortError"));
    this.#connection?.close();
  }

  async #stayConnected(): Promise<TerminalExit> {
    const { signal } = this.#closed;
    try {
      for (;;) {
        signal.throwIfAborted();
        const end = await this.#connectOnce();
        signal.throwIfAborted();
        if (end.kind === "exited") return this.#finish(end.exit);
        if (end.kind === "refused") throw end.error;
        await this.#beforeNextTry(end);
      }
    } catch (error) {
      this.#gate.fail(error);
      this.output.end(signal.aborted ? {} : { error });
      throw error;
    }
  }

  async #connectOnce(): Promise<ConnectionEnd> {
    const { openSocket, ptyId, readonly } = this.#options;
    const query = { since: this.#offset, ptyId, window: WINDOW_BYTES, ...(readonly && { readonly: true }) };
    this.#connection = new TerminalConnection(openSocket(query), {
      ready: (frame) => this.#ready(frame),
      bytes: (bytes) => this.#took(bytes),
      frame: (frame) => this.#heard(frame),
    });
    const end = await this.#connection.ended;
    this.#connection = undefined;
    return end;
  }

  async #beforeNextTry(end: ConnectionEnd & { kind: "broken" }): Promise<void> {
    const { patience, check, serverUrl } = this.#options;
    this.#gate.shut();
    if (this.#state === "connected") this.#turn("lost");
    // A reader that does not come for what there is gets no more of it.
    await this.output.wanted(this.#closed.signal);
    await patience.pause(failureOfConnection(new Error(end.reason), serverUrl), this.#closed.signal);
    await check(this.#closed.signal);
  }

  #ready(frame: ToViewer & { type: "ready" }): void {
    this.#options.patience.reset();
    this.#offset = frame.offset;
    this.#noteSize(frame);
    if (this.#wantedSize !== undefined) this.resize(this.#wantedSize);
    this.#turn("connected");
    this.#gate.open();
  }

  #turn(state: "connected" | "lost"): void {
    const before = this.#state;
    this.#state = state;
    if (state === "lost") this.onConnection.tell("lost");
    else if (before === "lost") this.onConnection.tell("back");
  }

  #took(bytes: Uint8Array): void {
    const offset = this.#offset;
    this.#offset += bytes.length;
    this.output.push({ type: "output", offset, bytes });
  }

  #heard(frame: ToViewer): void {
    if (frame.type === "resize") this.#noteSize(frame);
    if (frame.type === "input" && frame.state === "full") this.#gate.shut();
    if (frame.type === "input" && frame.state === "open") this.#gate.open();
    if (frame.type !== "truncated") return;
    this.#offset = frame.to;
    this.output.push(frame);
  }

  #noteSize({ cols, rows }: { cols: number; rows: number }): void {
    const changed = cols !== this.#size.cols || rows !== this.#size.rows;
    this.#size = { cols, rows };
    if (changed) this.onResize.tell(this.#size);
  }

  #finish(exit: TerminalExit): TerminalExit {
    this.output.end();
    this.#gate.fail(ended());
    return exit;
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
      await this.#gate.opened();
      while ((this.#connection?.unsentBytes ?? 0) > UNSENT_BYTES) await sleep(5, this.#closed.signal);
      this.#connection?.type(bytes.subarray(at, at + WRITE_BYTES));
    }
  }
}

function readOnly(verb: string): HoldfastError {
  return new HoldfastError("forbidden", `cannot ${verb}: this terminal was opened read-only`, {
    hint: "Open it without `readonly`.",
  });
}

function ended(): HoldfastError {
  return new HoldfastError("wrong_state", "cannot type: the terminal's program has ended", {
    hint: "Open the terminal again to start a new program under its id.",
  });
}
