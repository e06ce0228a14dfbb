import { expect, test } from "bun:test";
import { type Ears, Garbled, Lines, type StreamedReply, Unanswered, type Wire } from "./index.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Name: value\r\n\r\n";
const LONG = "HTTP/1.1 206 Partial Content\r\ncontent-length: 12\r\n\r\n";

/** A connection on which a test says what comes, and sees what is done. */
class Peer {
  readonly done: string[] = [];
  #ears: Ears | undefined;
  readonly #lines = new Lines({ open: async (ears) => this.#open(ears), host: "there", keptMs: 1_000 });

  ask(signal?: AbortSignal): Promise<StreamedReply> {
    return this.#lines.stream({ method: "GET", path: "/log", headers: {}, body: undefined, signal });
  }

  async says(...pieces: string[]): Promise<void> {
    await Bun.sleep(0); // it was asked
    for (const piece of pieces) this.#ears?.heard(Buffer.from(piece, "latin1"));
  }

  async ends(): Promise<void> {
    await Bun.sleep(0);
    this.#ears?.over(new Error("closed"));
  }

  #open(ears: Ears): Wire {
    this.#ears = ears;
    const note = (what: string) => () => void this.done.push(what);
    const write = (text: string) => this.done.push(text) > 0;
    const [pause, resume, end] = [note("pause"), note("resume"), note("end")];
    return { write, isSending: false, holdProgram() {}, pause, resume, end };
  }
}

function textOf({ body }: StreamedReply): Promise<string> {
  return new Response(body).text();
}

function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "none",
    (error: unknown) => error,
  );
}

const bodies = {
  "in chunks": `${CHUNKED}5\r\nhello\r\nC\r\n, world\r\n0\r\n\r\n0\r\n\r\n`,
  "in a chunk with more to say": `${CHUNKED}00c ;a="b"\r\nhello\r\nworld\r\n0;c\r\nX-Last: 1\r\n\r\n`,
  "by its length": `${LONG}hello\r\nworld`,
};

for (const [how, reply] of Object.entries(bodies)) {
  test(`a body ${how} is the same wherever it is cut in two`, async () => {
    const told = new Set<string>();
    for (let at = 1; at < reply.length; at++) {
      const peer = new Peer();
      const asked = peer.ask();
      await peer.says(reply.slice(0, at), reply.slice(at));
      told.add(await textOf(await asked));
      expect(peer.done).toEqual(["GET /log HTTP/1.1\r\nHost: there\r\n\r\n", "end"]);
    }
    expect([...told]).toEqual([how === "in chunks" ? "hello, world\r\n0\r\n" : "hello\r\nworld"]);
  });
}

test("a head is told before anything of the body is there, with its status and its fields", async () => {
  const peer = new Peer();
  const asked = peer.ask();
  await peer.says(CHUNKED);
  const { status, headers } = await asked;
  expect([status, headers.get("x-name"), headers.get("x-other")]).toEqual([200, "value", null]);
  expect(peer.done.length).toBe(1);
});

test("an empty body ends with its head", async () => {
  for (const head of [
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    `${CHUNKED}0\r\n\r\n`,
  ]) {
    const peer = new Peer();
    const asked = peer.ask();
    await peer.says(head);
    expect(await textOf(await asked)).toBe("");
    expect(peer.done.at(-1)).toBe("end");
  }
});

test("what is no reply is refused, in the head and later", async () => {
  const heads = ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", `HTTP/1.1 200 ${"x".repeat(70_000)}`];
  for (const head of heads) {
    const peer = new Peer();
    const asked = failure(peer.ask());
    await peer.says(head);
    expect(await asked).toBeInstanceOf(Garbled);
    expect(peer.done.at(-1)).toBe("end");
  }
  const rests = [
    "x\r\n",
    "-1\r\n",
    "5\n",
    "\r\n",
    "1".repeat(5_000),
    "123456789\r\n",
    "5\r\nhelloXX\r\n",
    "5\r\nhello\n",
  ];
  for (const head of [...rests.map((rest) => CHUNKED + rest), `${LONG}hello world and more`]) {
    const peer = new Peer();
    const asked = peer.ask();
    await peer.says(head);
    expect(await failure(textOf(await asked))).toBeInstanceOf(Garbled);
    expect(peer.done.at(-1)).toBe("end");
  }
});

test("a connection that ends too early fails the question, or the body, and says which", async () => {
  const before = new Peer();
  const asked = failure(before.ask());
  await before.ends();
  expect(await asked).toMatchObject({ wasHeard: "unknown" });
  for (const reply of [CHUNKED, `${CHUNKED}5\r\nhel`, `${CHUNKED}5\r\nhello\r\n`, `${LONG}hello`]) {
    const peer = new Peer();
    const asked = peer.ask();
    await peer.says(reply);
    const read = failure(textOf(await asked));
    await peer.ends();
    const error = await read;
    expect(error).toBeInstanceOf(Unanswered);
    expect(error).toMatchObject({ wasHeard: "yes" });
  }
});

test("an abort is told as it was said, in the head and in the body, and closes the connection", async () => {
  for (const reply of ["", `${CHUNKED}5\r\nhel`]) {
    const [peer, stop] = [new Peer(), new AbortController()];
    const asked = peer.ask(stop.signal).then(textOf);
    const failed = failure(asked);
    await peer.says(reply);
    await Bun.sleep(0);
    stop.abort("enough");
    expect(await failed).toBe("enough");
    expect(peer.done.at(-1)).toBe("end");
  }
});

test("a reader that does not read is waited for, and one that leaves closes the connection", async () => {
  const peer = new Peer();
  const asked = peer.ask();
  const chunk = `80000\r\n${"x".repeat(0x80000)}\r\n`;
  await peer.says(CHUNKED, chunk, chunk);
  expect(peer.done.slice(1)).toEqual(["pause"]);
  const reader = (await asked).body?.getReader();
  await reader?.read();
  expect(peer.done.slice(1)).toEqual(["pause"]);
  await reader?.read();
  expect(peer.done.slice(1)).toEqual(["pause", "resume"]);
  await peer.says("5\r\nhe");
  expect((await reader?.read())?.value?.length).toBe(2);
  await reader?.cancel();
  expect(peer.done.slice(1)).toEqual(["pause", "resume", "end"]);
  await peer.says("llo\r\n0\r\n\r\n"); // nobody listens any more
});

test("a connection that is over before anything is sent fails the question, which was not heard", async () => {
  for (const isNoticed of [true, false]) {
    const open = async (ears: Ears): Promise<Wire> => {
      if (isNoticed) queueMicrotask(() => ears.over(new Error("closed")));
      const nothing = () => {};
      return {
        write: () => false,
        isSending: false,
        holdProgram: nothing,
        pause: nothing,
        resume: nothing,
        end: nothing,
      };
    };
    const lines = new Lines({ open, host: "there", keptMs: 1_000 });
    const question = { method: "GET", path: "/", headers: {}, body: undefined, signal: undefined };
    expect(await failure(lines.stream(question))).toMatchObject({ wasHeard: "no" });
  }
});
