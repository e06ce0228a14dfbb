import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { HoldfastError } from "@holdfast/protocol";
import type { Target } from "./transport.ts";

/** A connection that was a request's, and is a stream of bytes in both directions from then on. */
export interface Hijacked {
  readonly socket: Socket;
  /** What came behind the answer's head already. */
  readonly head: Buffer;
}

/** The head of an answer has a few lines. */
const MAX_HEAD_BYTES = 64 * 1024;

/** Sends one request by hand, because no client of HTTP gives its connection away. `path` with the API's version. */
export async function hijack(
  target: Target,
  { path, json, signal }: { path: string; json: unknown; signal: AbortSignal },
): Promise<Hijacked> {
  const socket = await dial(target, signal);
  const giveUp = () => socket.destroy();
  signal.addEventListener("abort", giveUp);
  try {
    const body = JSON.stringify(json);
    const lines = [
      `POST ${path} HTTP/1.1`,
      ...["Host: docker", "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`],
      ...["Connection: Upgrade", "Upgrade: tcp"],
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
    return { socket, head: await readHead(socket) };
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

function dial({ url, unix, tls }: Target, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket =
    unix !== undefined
      ? connect({ path: unix, allowHalfOpen: true })
      : tls !== undefined
        ? connectTls({ host, port: Number(port), ca: tls.ca, cert: tls.cert, key: tls.key })
        : connect({ host, port: Number(port), allowHalfOpen: true });
  return new Promise((resolve, reject) => {
    socket.once(tls === undefined ? "connect" : "secureConnect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Returns what follows the head. */
function readHead(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const onData = (piece: Buffer): void => {
      read = Buffer.concat([read, piece]);
      const end = read.indexOf("\r\n\r\n");
      if (end === -1 && read.length < MAX_HEAD_BYTES) return;
      socket.pause();
      stop();
      const status = Number(/^HTTP\/1\.\d (\d+)/.exec(read.toString("latin1", 0, 32))?.[1]);
      if (end !== -1 && (status === 101 || status === 200)) resolve(read.subarray(end + 4));
      else reject(new HoldfastError("unavailable", `Docker did not give its connection away: ${status}`));
    };
    const onEnd = (): void => reject(Object.assign(new Error("it was closed"), { code: "ECONNRESET" }));
    const stop = (): void => {
      socket.off("data", onData).off("close", onEnd).off("end", onEnd);
    };
    socket.on("data", onData).once("close", onEnd).once("end", onEnd);
    socket.on("error", reject);
  });
}
