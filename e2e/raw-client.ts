import { connect, type Socket } from "node:net";

/** A connection on which a test says exactly the bytes it means, and hears exactly those that come. */
export class RawClient {
  readonly #socket: Socket;
  #heard = Buffer.alloc(0);
  #isOver = false;
  #changed = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#heard = Buffer.concat([this.#heard, bytes]);
      this.#change();
    });
    socket.on("error", () => {});
    for (const event of ["end", "close"]) {
      socket.on(event, () => {
        this.#isOver = true;
        this.#change();
      });
    }
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new RawClient(socket);
  }

  say(bytes: string | Uint8Array): this {
    this.#socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    return this;
  }

  /** What came up to and with the text, which must come before the end. */
  async until(text: string): Promise<string> {
    for (;;) {
      const at = this.#heard.indexOf(text);
      if (at !== -1) {
        const found = this.#heard.toString("latin1", 0, at + text.length);
        this.#heard = this.#heard.subarray(at + text.length);
        return found;
      }
      if (this.#isOver) throw new Error(`the end came before "${text}": ${this.#heard.toString()}`);
      await this.#changed.promise;
    }
  }

  /** Everything up to the end that the other side makes. */
  async rest(): Promise<string> {
    while (!this.#isOver) await this.#changed.promise;
    return this.#heard.toString("latin1");
  }

  /** No more from us; we still hear. */
  end(): this {
    this.#socket.end();
    return this;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** May be called twice. */
  close(): void {
    this.#socket.destroy();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
