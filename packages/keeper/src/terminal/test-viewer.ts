import type { ToViewer } from "@holdfast/protocol";

// Long, for a machine that does much else; a test that comes to this has failed.
const GIVE_UP_MS = 20_000;

/** A viewer that remembers everything, and never waits by the clock. */
export class TestViewer {
  readonly socket: WebSocket;
  readonly frames: ToViewer[] = [];
  closed: { code: number; reason: string } | undefined;
  bytes = new Uint8Array(0);
  #offset = 0;
  readonly #waiting = new Set<() => void>();

  constructor(url: string, headers: Record<string, string>) {
    // Only the runtime's own WebSocket takes headers; the type is the web's.
    this.socket = new WebSocket(url, { headers } as unknown as string[]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => this.#took(data);
    this.socket.onclose = ({ code, reason }) => {
      this.closed = { code, reason };
      this.#wake();
    };
  }

  /** One that has got its first frame, or was refused. */
  static async connect(url: string, headers: Record<string, string>): Promise<TestViewer> {
    const viewer = new TestViewer(url, headers);
    await viewer.until(({ frames, closed }) => frames.length > 0 || closed !== undefined);
    return viewer;
  }

  get text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** Offset after the last byte it got. */
  get offset(): number {
    return this.#offset;
  }

  frame<T extends ToViewer["type"]>(type: T): Extract<ToViewer, { type: T }> | undefined {
    const is = (frame: ToViewer): frame is Extract<ToViewer, { type: T }> => frame.type === type;
    return this.frames.filter(is).at(-1);
  }

  type(text: string): void {
    this.socket.send(new TextEncoder().encode(text));
  }

  resize(cols: number, rows: number): void {
    this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  async sees(pattern: RegExp): Promise<void> {
    await this.until(({ text }) => pattern.test(text), pattern);
  }

  async until(condition: (viewer: this) => boolean, what: unknown = condition): Promise<void> {
    const deadline = AbortSignal.timeout(GIVE_UP_MS);
    while (!condition(this)) {
      if (deadline.aborted) throw new Error(`never came: ${what}\n${this.text.slice(-500)}`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        deadline.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** Until the other side has closed. */
  async ended(): Promise<void> {
    await this.until(({ closed }) => closed !== undefined, "the end");
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.ended();
  }

  #took(data: string | ArrayBuffer): void {
    if (typeof data === "string") this.#tookFrame(JSON.parse(data));
    else {
      const more = new Uint8Array(data);
      const whole = new Uint8Array(this.bytes.length + more.length);
      whole.set(this.bytes);
      whole.set(more, this.bytes.length);
      this.bytes = whole;
      this.#offset += more.length;
    }
    this.#wake();
  }

  #tookFrame(frame: ToViewer): void {
    this.frames.push(frame);
    if (frame.type === "ready") this.#offset = frame.offset;
    if (frame.type === "truncated") this.#offset = frame.to;
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
