import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "./client.ts";
import { nearServer } from "./near.ts";

const leftovers: (() => unknown)[] = [];
afterEach(async () => {
  for (const remove of leftovers.splice(0)) await remove();
});

/** Says just what a test makes it say, to each piece that it hears. */
function rawServer(answer: (socket: Bun.Socket, heard: string) => void) {
  const counts = { opened: 0, open: 0 };
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
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
  leftovers.push(() => listener.stop(true));
  return { url: `http://127.0.0.1:${listener.port}`, counts };
}

function reply(body: string, head = "HTTP/1.1 200 OK\r\n"): string {
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const look = { method: "GET", path: "/v1/x", again: "safe" } as const;
const connect = (url: string) => Client.connect({ url, token: "t", patienceMs: 2_000 });

test("only to this machine, in the clear, and where nothing else was given to ask with", async () => {
  expect(await nearServer("http://127.0.0.1:4750")).toBeDefined();
  expect(await nearServer("http://[::1]:4750")).toBeDefined();
  expect(await nearServer("https://127.0.0.1:4750")).toBeUndefined();
  expect(await nearServer("http://holdfast.example:4750")).toBeUndefined();
  const asked: string[] = [];
  const fetch = async (url: string) => {
    asked.push(url);
    return Response.json({});
  };
  await (await Client.connect({ url: "http://127.0.0.1:1", token: "t", fetch })).json(look);
  expect(asked).toEqual(["http://127.0.0.1:1/v1/x"]);
});

test("one call after the other goes over one connection, for all clients of a server", async () => {
  const heard: string[] = [];
  const { url, counts } = rawServer((socket, text) => {
    heard.push(text);
    socket.write(reply('{"a":"ä"}', "HTTP/1.1 200 OK\r\nHoldfast-Generation: 7\r\n"));
  });
  for (let i = 0; i < 5; i++) {
    const client = await connect(`${url}/below`);
    const answer = await client.json({ ...look, query: { q: "ä b" }, json: { b: "ö" } });
    expect(answer).toEqual({ status: 200, body: { a: "ä" }, generation: 7, continuity: "fresh" });
  }
  expect(counts.opened).toBe(1);
  expect(heard[0]).toStartWith("GET /below/v1/x?q=%C3%A4+b HTTP/1.1\r\n");
  expect(heard[0]).toContain("Authorization: Bearer t\r\n");
  expect(heard[0]).toEndWith('\r\n\r\n{"b":"ö"}');
});

test("a server that answers in another way than ours is asked by fetch, and from then on alone so", async () => {
  let lines = 0;
  const { url } = rawServer((socket, text) => {
    if (!text.includes("User-Agent")) lines++; // as fetch, and only that, says
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
  });
  const client = await connect(url);
  for (let i = 0; i < 3; i++) expect((await client.json(look)).body).toEqual({});
  expect(lines).toBe(1);
});

test("a redirection is followed, and what needs encoding is left to who knows how", async () => {
  const { url } = rawServer((socket, text) => {
    if (text.startsWith("GET /v1/x")) socket.write(reply("", "HTTP/1.1 307 There\r\nLocation: /v1/y\r\n"));
    else socket.write(reply(JSON.stringify(text.split(" ")[1])));
  });
  const client = await connect(url);
  expect((await client.json(look)).body).toBe("/v1/y");
  expect((await client.json({ ...look, path: "/v1/ä b" })).body).toBe("/v1/%C3%A4%20b");
});

test("a server that goes away is asked again; one that was never there is told at once", async () => {
  let asked = 0;
  const { url, counts } = rawServer((socket) => {
    if (++asked === 2) socket.end();
    else socket.write(reply(String(asked)));
  });
  const client = await connect(url);
  expect((await client.json(look)).body).toBe(1);
  expect((await client.json(look)).body).toBe(3);
  expect(counts.opened).toBe(2);
  const nobody = await connect("http://127.0.0.1:1");
  await expect(nobody.json(look)).rejects.toMatchObject({ code: "unavailable", started: "no" });
});

test("what may not be sent twice goes by fetch", async () => {
  const agents: boolean[] = [];
  const { url } = rawServer((socket, text) => {
    agents.push(text.includes("User-Agent"));
    socket.write(reply("{}"));
  });
  const client = await connect(url);
  await client.json({ ...look, again: "never" });
  await client.json(look);
  expect(agents).toEqual([true, false]);
});

test("an abort ends the wait, and the connection", async () => {
  const { url, counts } = rawServer(() => {});
  const client = await connect(url);
  await expect(client.json({ ...look, signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
    name: "TimeoutError",
  });
  while (counts.opened === 0 || counts.open > 0) await Bun.sleep(1);
});

test("a stream comes over a connection of its own, with all of its fields, and an empty one as well", async () => {
  const { url, counts } = rawServer((socket, text) => {
    const head = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nX-Two: a: b \r\n";
    if (text.startsWith("GET /v1/none")) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
    else socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`);
  });
  const client = await connect(url);
  const response = await client.open(look);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/x"]);
  expect([response.headers.get("x-two"), await response.text()]).toEqual(["a: b", "abcde"]);
  expect((await client.open({ ...look, path: "/v1/none" })).body).toBeNull();
  while (counts.open > 0) await Bun.sleep(1);
  expect(counts.opened).toBe(2);
});

test("a stream that has no end of its own, and one that is elsewhere, are asked for by fetch", async () => {
  const { url } = rawServer((socket, text) => {
    if (text.startsWith("GET /v1/x")) socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end");
    else socket.write(reply("there"));
  });
  const client = await connect(url);
  expect(await (await client.open(look)).text()).toBe("until the end");
  const moved = rawServer((socket) =>
    socket.write(reply("gone", `HTTP/1.1 307 There\r\nLocation: ${url}/v1/y\r\n`)),
  );
  expect(await (await (await connect(moved.url)).open(look)).text()).toBe("there");
});

test("a stream is refused with what the server says, and left by an abort, which ends the connection", async () => {
  const error = { code: "not_found", message: "there is none" };
  const { url, counts } = rawServer((socket, text) => {
    if (text.startsWith("GET /v1/x")) socket.write(reply(JSON.stringify({ error }), "HTTP/1.1 404 No\r\n"));
    else socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  });
  const client = await connect(url);
  await expect(client.open(look)).rejects.toMatchObject(error);
  const signal = AbortSignal.timeout(50);
  const response = await client.open({ ...look, path: "/v1/y", signal });
  await expect(response.text()).rejects.toMatchObject({ name: "TimeoutError" });
  while (counts.open > 0) await Bun.sleep(1);
});

test.each(["node", "bun"])("a connection that rests keeps no program of %s from ending", async (runtime) => {
  const { url } = rawServer((socket) => socket.write(reply("{}")));
  const outdir = mkdtempSync(join(tmpdir(), "holdfast-near-"));
  leftovers.push(() => rmSync(outdir, { recursive: true }));
  const { outputs } = await Bun.build({
    ...{ entrypoints: [join(import.meta.dir, "client.ts")], outdir, target: "node", splitting: true },
  });
  const script = `
    const { Client } = await import(${JSON.stringify(outputs[0]?.path)});
    const client = await Client.connect({ url: ${JSON.stringify(url)}, token: "t" });
    await client.json(${JSON.stringify(look)});`;
  const flags = runtime === "node" ? ["--input-type=module"] : [];
  const program = runtime === "bun" ? process.execPath : runtime;
  const child = Bun.spawn([program, ...flags, "-e", script], { stderr: "inherit" });
  const late = Bun.sleep(5_000).then(() => "it waits");
  expect(await Promise.race([child.exited, late])).toBe(0);
  child.kill();
});
