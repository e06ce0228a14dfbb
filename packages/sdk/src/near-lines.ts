import type { Socket } from "node:net";
import { type Ears, Garbled, Lines, type Reply, type StreamedReply, type Wire } from "@holdfast/lines";
import type { Near, NearAnswer, NearQuestion } from "./near.ts";

/** A server closes what is silent for 30 s; by then we have. */
const KEPT_MS = 10_000;
/** As long as the runtimes' own `fetch` waits. */
const PATIENCE_MS = 300_000;
/** What needs no encoding. All else is left to `fetch`, which knows how. */
const PLAIN_PATH = /^[\x21-\x7e]*$/;
const PLAIN_VALUE = /^[\t\x20-\x7e]*$/;

/** Shared by all clients of a server, however many: each connection is kept for a while. */
const known = new Map<string, Near>();

/** Connections to a server on this machine, where the runtime has sockets: Node, Bun and the like. */
export function nearLines(url: string, net: typeof import("node:net")): Near {
  const address = new URL(url);
  const near = known.get(address.origin) ?? asking(linesTo(address, net), address.origin);
  known.set(address.origin, near);
  return near;
}

function linesTo({ hostname, port, host }: URL, net: typeof import("node:net")): Lines {
  const to = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 80), noDelay: true };
  const open = (ears: Ears) => opened(net.connect(to), ears);
  return new Lines({ open, host, keptMs: KEPT_MS, patienceMs: PATIENCE_MS });
}

function asking(lines: Lines, origin: string): Near {
  let isUnderstood = true;
  async function unlessStrange<T>(
    { url, ...question }: NearQuestion,
    send: (question: Parameters<Lines["ask"]>[0]) => Promise<T>,
  ): Promise<T | undefined> {
    const path = url.slice(origin.length);
    const isPlain =
      url.startsWith(`${origin}/`) &&
      PLAIN_PATH.test(path) &&
      Object.values(question.headers).every((value) => PLAIN_VALUE.test(value));
    if (!isUnderstood || !isPlain) return undefined;
    try {
      return await send({ ...question, path });
    } catch (error) {
      if (!(error instanceof Garbled)) throw error;
      // A proxy of this machine, for one, that does not say how long its answers are.
      isUnderstood = false;
      return undefined;
    }
  }
  return {
    async ask(question) {
      const reply = await unlessStrange(question, (asked) => lines.ask(asked));
      return reply === undefined || isElsewhere(reply) ? undefined : answerOf(reply);
    },
    async open(question) {
      const reply = await unlessStrange(question, (asked) => lines.stream(asked));
      if (reply === undefined || !isElsewhere(reply)) return reply && responseOf(reply);
      await reply.body?.cancel();
      return undefined;
    },
  };
}

function isElsewhere({ status }: Pick<Reply, "status">): boolean {
  return status >= 300 && status < 400;
}

function answerOf({ status, headers, text }: Reply): NearAnswer {
  return { ok: status < 300, status, headers, text: async () => text };
}

function responseOf({ status, headers, body }: StreamedReply): Response {
  const isEmpty = status === 204;
  return new Response(isEmpty ? null : body, { status, headers: [...headers] });
}

function opened(socket: Socket, ears: Ears): Promise<Wire> {
  return new Promise((resolve, reject) => {
    socket.once("connect", () => {
      // From here on whoever asks hears of it.
      socket.off("error", reject);
      socket.on("error", (error) => ears.over(error));
      socket.on("data", (bytes: Buffer) => ears.heard(bytes));
      socket.on("close", () => ears.over(new Error("the connection was closed")));
      resolve(wireOf(socket));
    });
    socket.on("error", reject);
  });
}

function wireOf(socket: Socket): Wire {
  return {
    get isSending() {
      return socket.writableLength > 0;
    },
    write(text) {
      if (!socket.writable) return false;
      socket.write(text);
      return true;
    },
    holdProgram(hold) {
      if (hold === "no") socket.unref();
      else socket.ref();
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    end: () => socket.destroy(),
  };
}
