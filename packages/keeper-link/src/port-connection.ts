import { HoldfastError, PortFlow } from "@holdfast/protocol";
import { type ByteStream, Inbox } from "./byte-stream.ts";
import { garbled, lost } from "./failures.ts";

/** A program that listens takes a connection at once; the keeper gives up before this. */
const OPEN_MS = 15_000;

/** A connection to a port inside a sandbox, over a WebSocket to its keeper. */
export class PortConnection implements ByteStream {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #inbox = new Inbox(() => this.#tellTaken());
  readonly #flow: PortFlow;
  readonly #opened = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #room: PromiseWithResolvers<void> | undefined;
  #isOver = false;
  #hasEnded = false;
  #heard = 0;
  #told = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = this.#over.promise;
    this.#flow = new PortFlow({
      send: (message) => this.#send(message),
      onOpen: () => this.#opened.resolve(),
      onRefused: (error) => this.#opened.reject(HoldfastError.fromBody({ error }) ?? garbled("a refusal")),
      onBytes: (bytes) => this.#inbox.push(bytes),
      onEnd: () => this.#inbox.end("ended"),
      onRoom: () => this.#makeRoom(),
      onBroken: () => this.#break(garbled("a port's connection")),
    });
    socket.binaryType = "nodebuffer" as BinaryType;
    socket.addEventListener("message", ({ data }) => this.#hear(data as string | Uint8Array));
    socket.addEventListener("close", () =>
      this.#break(lost(new Error("the connection was closed"), "unknown")),
    );
    socket.addEventListener("error", () => {}); // its close follows
  }

  /** Resolves when the program inside has taken the connection. Rejects with the keeper's reason if it gave one. */
  static async open(socket: WebSocket): Promise<PortConnection> {
    const connection = new PortConnection(socket);
    const timer = setTimeout(() => connection.#break(lost(new Error("no answer in time"), "no")), OPEN_MS);
    try {
      await connection.#opened.promise;
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** It is open both ways, and the program has said nothing that was not read. */
  get isQuiet(): boolean {
    return !this.#isOver && this.#inbox.isQuiet;
  }

  read(): Promise<Uint8Array | undefined> {
    return this.#inbox.read();
  }

  get waiting(): number {
    return this.#inbox.size;
  }

  unread(bytes: Uint8Array): void {
    this.#inbox.unread(bytes);
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) throw lost(new Error("the connection was closed"), "unknown");
    if (bytes.length === 0 || this.#flow.send(bytes)) return;
    this.#room ??= Promise.withResolvers();
    await this.#room.promise;
  }

  end(): void {
    if (this.#hasEnded || this.#isOver) return;
    this.#hasEnded = true;
    this.#flow.say({ type: "end" });
  }

  destroy(): void {
    this.#break(lost(new Error("we closed it"), "unknown"));
  }

  #hear(message: string | Uint8Array): void {
    if (typeof message !== "string") this.#heard += message.length;
    this.#flow.hear(message);
  }

  /** What was given back counts as not taken. */
  #tellTaken(): void {
    const taken = this.#heard - this.#inbox.size - this.#told;
    if (taken <= 0 || this.#isOver) return;
    this.#told += taken;
    this.#flow.taken(taken);
  }

  #send(message: string | Uint8Array): void {
    if (!this.#isOver) this.#socket.send(message as string | Uint8Array<ArrayBuffer>);
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #break(why: HoldfastError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#opened.reject(why);
    this.#opened.promise.catch(() => {});
    this.#inbox.end(why);
    this.#room?.promise.catch(() => {});
    this.#room?.reject(why);
    this.#over.resolve();
    this.#socket.close();
  }
}
