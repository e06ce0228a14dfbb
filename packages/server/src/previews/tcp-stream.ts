import type { Socket } from "node:net";
import { type ByteStream, Inbox } from "@holdfast/keeper-link";

/** Past this a visitor is not read from until something was taken out. */
const HIGH_BYTES = 256 * 1024;
/**
 * A visitor that will say no more may still listen, or be gone: both look the same. So it gets what is on its way, and
 * when that pauses for so long, a program that still has something to say to it says it to nobody.
 */
const SILENT_MS = 3_000;

/** A visitor's connection. */
export class TcpStream implements ByteStream {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #inbox = new Inbox(() => this.#resumeIfLow());
  #isPaused = false;
  #isClosed = false;

  /** `socket` was made with `allowHalfOpen`. */
  constructor(socket: Socket) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on("data", (bytes: Uint8Array) => {
      this.#inbox.push(bytes);
      if (this.#inbox.size < HIGH_BYTES) return;
      this.#isPaused = true;
      socket.pause();
    });
    socket.on("end", () => {
      this.#inbox.end("ended");
      this.#leaveIfSilent();
    });
    socket.on("error", (error) => this.#inbox.end(error));
    socket.on("close", () => {
      this.#isClosed = true;
      this.#inbox.end(new Error("the visitor left"));
      resolve();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
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
    if (this.#isClosed) throw new Error("the visitor left");
    if (bytes.length === 0 || this.#socket.write(bytes)) return;
    await this.#drained();
    if (this.#isClosed) throw new Error("the visitor left");
  }

  end(): void {
    if (!this.#isClosed) this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Or closed. No race with `closed`, which would remember each of them for as long as the connection lasts. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done).off("close", done);
        resolve();
      };
      this.#socket.on("drain", done).on("close", done);
    });
  }

  /** Looks again as long as something is written. */
  #leaveIfSilent(): void {
    const before = this.#socket.bytesWritten;
    const timer = setTimeout(() => {
      if (this.#socket.bytesWritten === before) this.#socket.destroy();
      else this.#leaveIfSilent();
    }, SILENT_MS);
    void this.closed.then(() => clearTimeout(timer));
  }

  #resumeIfLow(): void {
    if (!this.#isPaused || this.#inbox.size >= HIGH_BYTES) return;
    this.#isPaused = false;
    this.#socket.resume();
  }
}
