import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { fakeKeeper } from "./fake-keeper.ts";
import { KeeperLink } from "./keeper-link.ts";

const anything = z.unknown();
const leftovers: (() => void)[] = [];
afterEach(() => {
  for (const remove of leftovers.splice(0)) remove();
});

/** Says on its socket just what a test makes it say, to each piece that it hears. */
function rawKeeper(answer: (socket: Bun.Socket, heard: string) => void) {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-line-"));
  const socketPath = join(dir, "keeper.sock");
  const counts = { opened: 0, open: 0 };
  const listener = Bun.listen({
    unix: socketPath,
    socket: {
      open: () => {
        counts.opened++;
        counts.open++;
      },
      data: (socket, bytes) => answer(socket, bytes.toString()),
      close: () => {
        counts.open--;
      },
    },
  });
  leftovers.push(() => {
    listener.stop(true);
    rmSync(dir, { recursive: true });
  });
  return { link: new KeeperLink({ socketPath, secret: "s", fence: 1 }), counts };
}

function reply(body: string, head = ""): string {
  return `HTTP/1.1 200 OK\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const ask = (link: KeeperLink, body = "{}") => link.json({ method: "POST", path: "/exec", body }, anything);
const failure = (asked: Promise<unknown>) =>
  asked.then(
    () => "answered",
    (error: unknown) => error,
  );

test("one question after the other goes over one connection, and many at a time over as many", async () => {
  const waiting: (() => void)[] = [];
  const { link, counts } = rawKeeper((socket, heard) => {
    const text = heard.slice(heard.indexOf("\r\n\r\n") + 4);
    if (text === '"wait"') waiting.push(() => socket.write(reply(text)));
    else socket.write(reply(text));
  });
  for (let i = 0; i < 20; i++) expect(await ask(link, String(i))).toBe(i);
  expect(counts.opened).toBe(1);
  const together = Promise.all(Array.from({ length: 30 }, () => ask(link, '"wait"')));
  while (waiting.length < 30) await Bun.sleep(1);
  for (const go of waiting) go();
  expect(await together).toEqual(Array.from({ length: 30 }, () => "wait"));
  // A burst leaves few behind.
  while (counts.open > 8) await Bun.sleep(1);
  expect(await ask(link, "1")).toBe(1);
});

test.each([1, 7, 100_000])(
  "a reply in pieces of %d bytes is whole, whatever they cut apart",
  async (size) => {
    const text = JSON.stringify("ä€😀\r\n\r\n".repeat(size === 100_000 ? 300_000 : 20));
    const { link } = rawKeeper(async (socket) => {
      const bytes = Buffer.from(reply(text));
      for (let at = 0; at < bytes.length; ) {
        at += socket.write(bytes.subarray(at, at + size));
        socket.flush();
        await Bun.sleep(0);
      }
    });
    expect(JSON.stringify(await ask(link))).toBe(text);
  },
);

test("a question larger than a socket takes at once arrives whole, before others on the same connection", async () => {
  await using keeper = fakeKeeper({
    "/v1/exec": async (request) => Response.json(new Bun.SHA256().update(await request.text()).digest("hex")),
  });
  for (const size of [1, 5_000_000, 12]) {
    const body = JSON.stringify("ä€😀".repeat(size));
    expect(await ask(keeper.link, body)).toBe(new Bun.SHA256().update(body).digest("hex"));
  }
});

test.each<[string, string]>([
  ["no HTTP", "hello\r\n\r\n"],
  ["no length", "HTTP/1.1 200 OK\r\n\r\n{}"],
  ["a stream", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
  ["a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"],
  ["an absurd length", "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{}"],
  ["a head without an end", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(20_000)}`],
  ["more than it announced", `${reply("{}")}{}`],
  ["an interim answer", "HTTP/1.1 100 Continue\r\n\r\n"],
])(
  "a keeper that answers with %s is refused, and the next question has another connection",
  async (_, text) => {
    let asked = 0;
    const { link, counts } = rawKeeper((socket) => {
      socket.write(asked++ === 0 ? text : reply('"fine"'));
    });
    expect(await failure(ask(link))).toMatchObject({ code: "internal", started: "unknown" });
    expect(await ask(link)).toBe("fine");
    expect(counts.opened).toBe(2);
  },
);

test("one that speaks without being asked is not believed", async () => {
  let asked = 0;
  const { link } = rawKeeper((socket) => {
    socket.write(reply(String(++asked)));
    if (asked === 1) setTimeout(() => socket.write(reply("666")), 1);
  });
  expect(await ask(link)).toBe(1);
  await Bun.sleep(20);
  expect(await ask(link)).toBe(2);
});

test("whether the work may have begun is told by how far it came", async () => {
  const nobody = new KeeperLink({ socketPath: "/nowhere/keeper.sock", secret: "s", fence: 1 });
  expect(await failure(ask(nobody))).toMatchObject({ code: "keeper_lost", started: "no" });
  const silent = rawKeeper((socket) => void socket.end());
  expect(await failure(ask(silent.link))).toMatchObject({ code: "keeper_lost", started: "unknown" });
  const look = silent.link.json({ method: "GET", path: "/keeper" }, anything);
  expect(await failure(look)).toMatchObject({ code: "keeper_lost", started: "no" });
  const cut = rawKeeper((socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"));
  expect(await failure(ask(cut.link))).toMatchObject({ code: "keeper_lost", started: "yes" });
});

test("a keeper that ended while its connection rested is noticed, and one that says so closes it", async () => {
  const { link, counts } = rawKeeper((socket, heard) => {
    socket.write(reply("1", heard.includes("closing") ? "Connection: close\r\n" : ""));
    if (heard.includes("ending")) setTimeout(() => socket.end(), 1);
  });
  await ask(link, '"ending"');
  while (counts.open > 0) await Bun.sleep(1);
  await ask(link, '"closing"');
  await ask(link);
  expect(counts.opened).toBe(3);
});

test("an abort ends the connection, and only that one", async () => {
  const { link, counts } = rawKeeper((socket, heard) => {
    if (!heard.includes("never")) socket.write(reply("1"));
  });
  const signal = AbortSignal.timeout(20);
  const call = { method: "POST", path: "/exec", body: '"never"', signal } as const;
  expect(await failure(link.json(call, anything))).toMatchObject({ name: "TimeoutError" });
  while (counts.open > 0) await Bun.sleep(1);
  expect(await failure(link.json(call, anything))).toMatchObject({ name: "TimeoutError" });
  expect(await ask(link)).toBe(1);
});

test("a line break in a path or a header is not sent", async () => {
  let asked = 0;
  const { link } = rawKeeper(() => asked++);
  const path = "/exec HTTP/1.1\r\nX: y";
  expect(await failure(link.json({ method: "GET", path }, anything))).toBeInstanceOf(TypeError);
  const headers = { "X-Name": "a\r\nX-Other: b" };
  expect(await failure(link.json({ method: "GET", path: "/exec", headers }, anything))).toBeInstanceOf(
    TypeError,
  );
  expect(asked).toBe(0);
});
