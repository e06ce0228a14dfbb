import { expect, test } from "bun:test";
import { FENCE_HEADER, PORT_WINDOW_BYTES, type PortMessage } from "@holdfast/protocol";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

test("a connection inside is counted, not trusted: bytes are use, silence is none, and nobody floods anybody", async () => {
  const server = Bun.listen<undefined>({
    hostname: "::1",
    port: 0,
    socket: {
      data: (socket, bytes) => void (String(bytes) === "flood" ? flood(socket) : socket.write(bytes)),
    },
  });
  await using keeper = await startTestKeeper();
  expect((await keeper.call("/v1/ports")).body.ports).toContain(server.port);

  const line = await Line.open(keeper, server.port);
  expect(await line.message()).toEqual({ type: "open" });
  line.socket.send(Buffer.from("hello"));
  expect(await line.bytes(5)).toBe("hello");
  const { heldAwakeBy } = (await keeper.call("/v1/activity")).body;
  expect(heldAwakeBy).toEqual([]);
  const busy = (await keeper.call("/v1/quiesce", { lifetimeMs: 60_000 })).body;
  expect(busy.because[0]).toEndWith(`ago: bytes went through port ${server.port}`);

  // Without a word that it was taken, no more than the window comes, and what was read in one piece with it.
  line.socket.send(Buffer.from("flood"));
  await line.bytes(PORT_WINDOW_BYTES);
  await keeper.call("/v1/keeper");
  const held = line.size;
  expect(held).toBeLessThan(8 * PORT_WINDOW_BYTES);
  line.socket.send(JSON.stringify({ type: "taken", bytes: PORT_WINDOW_BYTES + held }));
  await line.bytes(held + 1);

  // An open connection that is silent does not hold the instance; once it rests, there are no new ones.
  line.socket.send(JSON.stringify({ type: "nonsense" }));
  await line.closed;
  expect((await keeper.call("/v1/quiesce", { lifetimeMs: 0 })).body).toEqual({ state: "quiesced" });
  const refused = await Line.open(keeper, server.port);
  expect(await refused.message()).toMatchObject({ type: "refused", error: { code: "quiesced" } });
  await keeper.call("/v1/resume", {});
  server.stop(true);
  const nobody = await Line.open(keeper, server.port);
  expect(await nobody.message()).toMatchObject({ type: "refused", error: { code: "wrong_state" } });
  expect((await keeper.request("/v1/ports/99999/connect")).status).toBe(400);
});

function flood(socket: Bun.Socket): void {
  const bytes = new Uint8Array(1024 ** 2);
  while (socket.write(bytes) === bytes.length);
}

/** A server's end of a connection to a port. */
class Line {
  readonly socket: WebSocket;
  readonly closed: Promise<unknown>;
  readonly #messages: PortMessage[] = [];
  #bytes = Buffer.alloc(0);
  #changed = Promise.withResolvers<void>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") this.#messages.push(JSON.parse(data));
      else this.#bytes = Buffer.concat([this.#bytes, Buffer.from(data as ArrayBuffer)]);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    });
  }

  static async open({ boot }: TestKeeper, port: number): Promise<Line> {
    const headers = { Authorization: `Bearer ${boot.secret}`, [FENCE_HEADER]: "1" };
    const url = `ws+unix://${boot.socketPath}:/v1/ports/${port}/connect`;
    return new Line(new WebSocket(url, { headers } as unknown as string[]));
  }

  get size(): number {
    return this.#bytes.length;
  }

  async message(): Promise<PortMessage | undefined> {
    while (this.#messages.length === 0) await this.#changed.promise;
    return this.#messages.shift();
  }

  async bytes(count: number): Promise<string> {
    while (this.#bytes.length < count) await this.#changed.promise;
    const found = this.#bytes.toString("latin1", 0, count);
    this.#bytes = this.#bytes.subarray(count);
    return found;
  }
}
