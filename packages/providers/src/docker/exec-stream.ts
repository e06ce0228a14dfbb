import { Duplex } from "node:stream";
import type { DockerApi } from "./api.ts";

/** Of what a program in a container complains of. */
const SAID_BYTES = 2_000;
const HEADER_BYTES = 8;
const STDOUT = 1;

/** The standard streams of a program that runs in a container, as one stream; `said` is what it wrote to stderr. */
export interface ExecStream {
  readonly stream: Duplex;
  said(): string;
}

/** Runs a program in a container as its root: what works there is another user, and cannot look into it. */
export async function execIn(
  api: DockerApi,
  container: string,
  { argv, signal }: { argv: readonly string[]; signal: AbortSignal },
): Promise<ExecStream> {
  const attached = { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false };
  const made = await api.json<{ Id: string }>({
    ...{ method: "POST", path: `/containers/${container}/exec`, signal },
    json: { ...attached, User: "0:0", Cmd: argv },
  });
  const start = { path: `/exec/${made?.Id}/start`, json: { Detach: false, Tty: false }, signal };
  const { socket, head } = await api.hijack(start);
  const frames = new Frames();
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (bytes, encoding, done) => void socket.write(bytes, encoding, () => done()),
    final: (done) => void socket.end(() => done()),
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  const take = (bytes: Buffer): void => {
    for (const piece of frames.take(bytes)) if (!stream.push(piece)) socket.pause();
  };
  take(head);
  socket.on("data", take);
  socket.once("end", () => stream.push(null));
  // Also what broke off is over: what is missing shows to whoever reads it.
  socket.once("close", () => stream.destroy());
  socket.on("error", () => stream.destroy());
  return { stream, said: () => frames.said.trim() };
}

/** Docker puts eight bytes before each piece: the stream, three zeros, and the length. */
class Frames {
  said = "";
  #header = Buffer.alloc(0);
  #left = 0;
  #isStdout = false;

  /** What of it was written to stdout. */
  *take(bytes: Buffer): Generator<Buffer> {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#left === 0) {
        rest = this.#readHeader(rest);
        continue;
      }
      const piece = rest.subarray(0, this.#left);
      this.#left -= piece.length;
      rest = rest.subarray(piece.length);
      if (this.#isStdout) yield piece;
      else this.said = (this.said + piece.toString("utf8")).slice(-SAID_BYTES);
    }
  }

  #readHeader(bytes: Buffer): Buffer {
    const missing = HEADER_BYTES - this.#header.length;
    this.#header = Buffer.concat([this.#header, bytes.subarray(0, missing)]);
    if (this.#header.length === HEADER_BYTES) {
      this.#isStdout = this.#header[0] === STDOUT;
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    return bytes.subarray(missing);
  }
}
