import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { Sandbox } from "holdfast";
import { keeperPid, TestServer } from "./harness.ts";
import { RawClient } from "./raw-client.ts";

const MIB = 1024 ** 2;
/** Ours: a program would refuse some of it, too. */
const REFUSED = "HTTP/1.1 400 This request cannot be passed on";

let server: TestServer;
let sandbox: Sandbox;
let previewPort: number;
let host: string;
const open: RawClient[] = [];

beforeAll(async () => {
  previewPort = await freePort();
  server = await TestServer.start({ args: ["--preview-port", String(previewPort)] });
  sandbox = await Sandbox.create({ network: "none" }, server.at);
  await startApp();
  host = new URL((await sandbox.ports.expose(3000)).url).host;
});

afterAll(async () => {
  for (const client of open) client.close();
  await server.dispose();
});

test("a program on localhost inside is reached by name, with the headers it expects, over a connection that is kept", async () => {
  const client = await visit();
  const spoofed =
    "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Secret: s\r\nConnection: x-secret\r\n";
  client.say(`GET /a?b=c HTTP/1.1\r\nHost: ${host}\r\nCookie: mine=1\r\n${spoofed}\r\n`);
  expect(await client.until("\r\n\r\n")).toContain("HTTP/1.1 200 OK\r\n");
  const { rawHeaders, from, ...line } = JSON.parse(await client.until("}"));
  expect(line).toEqual({ method: "GET", url: "/a?b=c", httpVersion: "1.1" });
  expect(pairs(rawHeaders)).toEqual([
    ["host", "localhost:3000"],
    ["cookie", "mine=1"],
    ["x-forwarded-for", "127.0.0.1"],
    ["x-forwarded-host", host],
    ["x-forwarded-proto", "http"],
  ]);
  // The connection inside is kept, too; one that the program closes under us costs the visitor nothing.
  const fromOf = async (path: string) => {
    client.say(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await client.until("\r\n\r\n");
    return JSON.parse(await client.until("}")).from;
  };
  expect(await fromOf("/seal")).toBe(from);
  expect(await fromOf("/after")).not.toBe(from);
  // Said in one breath, they are answered one after the other.
  client.say(["/1", "/2"].map((path) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join(""));
  expect(await client.until('"url":"/1"')).not.toContain("/2");
  await client.until('"url":"/2"');
  await client.until("}");
  // The next request on the same connection is another one: it is judged by its own name.
  client.say(`HEAD /source?bytes=5 HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(await client.until("\r\n\r\n")).toContain("referrer-policy: same-origin\r\n");
  client.say(`GET /moved HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(await client.until("0\r\n\r\n")).toContain(`location: http://${host}/there\r\n`);
  client.say("GET / HTTP/1.1\r\nHost: 3000-other.localhost\r\n\r\n");
  expect(await client.rest()).toContain("HTTP/1.1 404");
});

test("whoever has not exactly the address gets the same 404, and nothing inside notices", async () => {
  const other = await Sandbox.create({}, server.at);
  const theirs = new URL((await other.ports.expose(3000)).url).hostname.split("-")[2];
  const before = (await seen()).requests;
  const [label = "", domain = ""] = [host.split(".")[0], host.split(".").slice(1).join(".")];
  const token = label.split("-")[2] ?? "";
  const wrong = [
    `3000-${sandbox.id}.${domain}`,
    `3000-${sandbox.id}-${"0".repeat(token.length)}.${domain}`,
    `3000-${sandbox.id}-${theirs}`,
    `3000-${sandbox.id}-${token}x.${domain}`,
    `3001-${sandbox.id}-${token}.${domain}`,
    `3000-sbx0000000000000-${token}.${domain}`,
    `3000-${other.id}-${token}.${domain}`,
    `${label}.example.com`,
    `127.0.0.1:${previewPort}`,
  ];
  const answers = await Promise.all(wrong.map((name) => ask(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)));
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain("HTTP/1.1 404");
  expect((await seen()).requests).toBe(before);
  await other.delete();
  // Host names have no case.
  expect(await ask(`GET / HTTP/1.0\r\nHost: ${host.toUpperCase()}\r\n\r\n`)).toContain(" 200 OK\r\n");
});

test("the token can be a cookie instead, which the program does not get to see", async () => {
  const { cookieUrl = "" } = await sandbox.ports.expose(3000);
  const { host: plain, search, searchParams } = new URL(cookieUrl);
  const token = searchParams.get("holdfast-token") ?? "";
  const moved = await ask(`GET //a${search}&x=1 HTTP/1.1\r\nHost: ${plain}\r\n\r\n`);
  expect(moved).toContain("HTTP/1.1 302");
  expect(moved).toContain(`\r\nlocation: http://${plain}//a?x=1\r\n`);
  expect(moved).toContain(`\r\nset-cookie: holdfast-preview=${token}; Path=/; HttpOnly; SameSite=Lax\r\n`);
  const withCookie = (cookie: string) =>
    ask(`GET / HTTP/1.1\r\nHost: ${plain}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`);
  const shown = await withCookie(`a=1; holdfast-preview=${token}; b=2`);
  expect(shown).toContain('"cookie","a=1; b=2"');
  expect(await withCookie(`holdfast-preview=${token}`)).not.toContain('"cookie"');
  const wrong = "0".repeat(token.length);
  const refused = [withCookie(`holdfast-preview=${wrong}`), withCookie(`other=${token}`)];
  refused.push(ask(`GET /?holdfast-token=${wrong} HTTP/1.1\r\nHost: ${plain}\r\n\r\n`));
  for (const answer of await Promise.all(refused)) expect(answer).toContain("HTTP/1.1 404");
});

test("requests that two programs could read in two ways are refused, and reach nobody", async () => {
  const before = (await seen()).requests;
  const post = `POST /sink HTTP/1.1\r\nHost: ${host}\r\n`;
  const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
  const hostile = [
    `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${post}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd${hidden}`,
    `${post}Content-Length: 4, 4\r\n\r\nabcd`,
    `${post}Content-Length: +4\r\n\r\nabcd`,
    `${post}Content-Length: 0x4\r\n\r\nabcd`,
    `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    `POST /sink HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${post}X: a\r\n folded: b\r\n\r\n`,
    `${post}X: a\nContent-Length: 4\r\n\r\nabcd`,
    `${post}X: a\rContent-Length: 4\r\n\r\nabcd`,
    `${post}X: \0\r\n\r\n`,
    `${post}X\r\n\r\n`,
    `${post}Host: ${host}\r\n\r\n`,
    "GET / HTTP/1.1\r\n\r\n",
    `GET / HTTP/1.1\nHost: ${host}\n\n`,
    `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET / x HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET / HTTP/2.0\r\nHost: ${host}\r\n\r\n`,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: ${host}\r\n${"X: y\r\n".repeat(300)}\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nX: ${"y".repeat(70_000)}`,
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
  ];
  const answers = await Promise.all(hostile.map((bytes) => ask(bytes)));
  expect(answers.map(firstLine)).toEqual(hostile.map(() => REFUSED));
  expect((await seen()).requests).toBe(before);

  // A body that turns out to be malformed on its way does reach the program, but is never taken for whole.
  const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;
  const bodies = [
    "5\r\nabcdefg\r\n0\r\n\r\n",
    "4\nabcd\r\n0\r\n\r\n",
    "-4\r\nabcd\r\n",
    "4;\n\r\nabcd\r\n",
    "fffffffffffff\r\n",
  ];
  const refused = await Promise.all(bodies.map((body) => ask(chunked + body)));
  expect(refused.map(firstLine)).toEqual(bodies.map(() => REFUSED));
  // An upgrade to anything but a WebSocket is not passed on: what it leads to would not be looked at.
  const upgrade = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`;
  const h2c = await ask(upgrade);
  expect(h2c).toContain(" 200 OK\r\n");
  expect(h2c.toLowerCase()).not.toContain("h2c");
});

test("streams, interim answers, early answers and half-closed connections pass as they are", async () => {
  const events = await visit();
  events.say(`GET /events HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await events.until("data: first\n\n");
  const { left } = await seen();
  events.close();
  while ((await seen()).left === left) await Bun.sleep(10);

  const socket = await webSocket();
  await socket.say("first words").until("first words");
  expect(await socket.say("last words").end().rest()).toBe("last wordsbye");

  const patient = await visit();
  patient.say(
    `POST /sink HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  await patient.until("HTTP/1.1 100 Continue\r\n\r\n");
  patient.say("3;x=y\r\nabc\r\n").say("A\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n");
  await patient.until(`13 ${sha256("abc0123456789")}`);

  const early = await visit();
  early
    .say(`POST /early HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${100 * MIB}\r\n\r\n`)
    .say(Buffer.alloc(MIB));
  expect(await early.until("too much")).toContain("connection: close\r\n");

  // A visitor that says no more still hears.
  const half = (await visit()).say(
    `GET /source?bytes=100000 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  );
  expect((await half.end().rest()).length).toBeGreaterThan(100_000);
  // As three lines of shell answer; and its end is the end.
  expect(await answering("HTTP/1.0 200 OK\nX: y\n\nhello")).toContain(
    "x: y\r\nreferrer-policy: same-origin\r\nconnection: close\r\n\r\nhello",
  );
});

test("a program's answer that makes no sense is a 502, and one that breaks off looks broken", async () => {
  const nonsense = [
    "",
    "hello\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: not all of",
  ];
  const answers = await Promise.all(nonsense.map(answering));
  expect(answers.map(firstLine)).toEqual(
    nonsense.map(() => "HTTP/1.1 502 The program's answer makes no sense"),
  );
  const broken = await answering("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
  expect(broken).toEndWith("\r\n\r\nhello");
  expect(
    await answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nz\r\n"),
  ).not.toContain("z\r\n");
});

test("256 MiB pass each way with flat memory, and a visitor that does not read is waited for", async () => {
  const pids = [server.pid, await keeperPid(sandbox)];
  await pull(8 * MIB);
  const before = pids.map(residentBytes);
  const slow = await visit();
  slow.pause();
  const { sent } = await seen();
  slow.say(`GET /source?bytes=${256 * MIB} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  // Buffers of the kernel and ours fill up; then the program stands still.
  const stalledAt = (await untilStill(async () => (await seen()).sent)) - sent;
  expect(stalledAt).toBeGreaterThan(0);
  expect(stalledAt).toBeLessThan(64 * MIB);
  slow.close();

  expect(await pull(256 * MIB)).toBe(256 * MIB);
  const bytes = Buffer.alloc(MIB, "u");
  let pushed = 0;
  const upload = new ReadableStream({
    pull(to) {
      to.enqueue(bytes);
      if (++pushed === 256) to.close();
    },
  });
  const answer = await fetch(`http://127.0.0.1:${previewPort}/sink`, {
    method: "POST",
    body: upload,
    headers: { Host: host },
  });
  const hash = createHash("sha256");
  for (let i = 0; i < 256; i++) hash.update(bytes);
  expect(await answer.text()).toBe(`${256 * MIB} ${hash.digest("hex")}`);
  for (const [i, pid] of pids.entries()) expect(residentBytes(pid) - (before[i] ?? 0)).toBeLessThan(96 * MIB);
});

test("an address outlives the server, and is gone the moment it is taken back", async () => {
  await sandbox.ports.close(3001);
  await server.restart("SIGKILL");
  expect(await sandbox.ports.list()).toEqual([
    {
      port: 3000,
      url: `http://${host}/`,
      cookieUrl: expect.any(String),
      createdAt: expect.any(String),
      wake: false,
      public: false,
      listening: true,
    },
    { port: 3001, listening: true },
  ]);
  const socket = await webSocket();
  await socket.say("still here").until("still here");
  await sandbox.ports.close(3000);
  expect(await socket.rest()).toBe("");
  const again = await ask(`GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n\r\n`);
  expect(again).toContain("HTTP/1.1 404");
  expect(again).toContain("<h1>Nothing is here</h1>");
  const next = new URL((await sandbox.ports.expose(3000)).url).host;
  expect(next).not.toBe(host);
  expect((await sandbox.ports.expose(3000)).url).toContain(next);
  host = next;
  // The token is the key, so nobody who may only read the story learns it.
  const told = JSON.stringify(await sandbox.events());
  expect(told).toContain('"port_closed"');
  expect(told).not.toContain(next.split("-")[2]?.split(".")[0] ?? "");
  const shared = new URL((await sandbox.ports.expose(3001, { public: true })).url).host;
  expect(shared).toBe(`3001-${sandbox.id}.localhost:${previewPort}`);
  expect(await ask(`GET /HTTP%2F1.1%20200%20OK%0A%0Ahi HTTP/1.1\r\nHost: ${shared}\r\n\r\n`)).toEndWith(
    "\r\n\r\nhi",
  );
});

test("a visit starts a stopped sandbox only if that was wanted", async () => {
  await sandbox.stop();
  const stopped = await ask(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(stopped).toContain("HTTP/1.1 503");
  expect(stopped).toContain("A visit does not start it");
  expect((await sandbox.refresh()).state).toBe("stopped");
  expect((await sandbox.ports.list()).map(({ listening }) => listening)).toEqual([false, false]);

  expect((await sandbox.ports.expose(3000, { wake: true })).url).toContain(host);
  const woken = await ask(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(woken).toContain("HTTP/1.1 502");
  expect(woken).toContain("Nothing in the sandbox listens on port 3000");
  expect((await sandbox.refresh()).state).toBe("running");
});

test("a domain of one's own is one setting; what the proxy in front says of the visitor counts", async () => {
  await startApp();
  await server.signal("SIGTERM");
  const domain = ["--preview-url", "https://preview.example.com", "--preview-port", String(previewPort)];
  const proxied = await TestServer.start({ dataDir: server.dataDir, args: domain });
  try {
    const same = await Sandbox.get(sandbox.id, proxied.at);
    const { url, cookieUrl = "" } = await same.ports.expose(3000);
    const name = `${host.split(".")[0]}.preview.example.com`;
    expect(url).toBe(`https://${name}/`);
    const client = await visit();
    client.say(`GET / HTTP/1.1\r\nHost: ${name}\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n`);
    await client.until("\r\n\r\n");
    expect(pairs(JSON.parse(await client.until("}")).rawHeaders)).toEqual([
      ["host", "localhost:3000"],
      ["x-forwarded-for", "203.0.113.7, 127.0.0.1"],
      ["x-forwarded-host", name],
      ["x-forwarded-proto", "https"],
    ]);
    client.say(`GET /moved HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
    expect(await client.until("0\r\n\r\n")).toContain(`location: https://${name}/there\r\n`);
    const { host: plain, search } = new URL(cookieUrl);
    client.say(`GET /${search} HTTP/1.1\r\nHost: ${plain}\r\n\r\n`);
    expect(await client.until("\r\n\r\n")).toMatch(/set-cookie: .*; Secure\r\n/);
    expect(await ask(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toContain("HTTP/1.1 404");
  } finally {
    await proxied.signal("SIGTERM");
  }
});

async function startApp(): Promise<void> {
  const stdin = readFileSync(`${import.meta.dir}/preview-app.mjs`, "utf8");
  await sandbox.exec("cat > app.mjs", { stdin });
  const app = await sandbox.startProcess(["node", "app.mjs"]);
  await app.waitForLog("ready");
}

async function visit(): Promise<RawClient> {
  const client = await RawClient.open(previewPort);
  open.push(client);
  return client;
}

/** Says it on a connection of its own, and gives everything that comes back up to the end. */
async function ask(bytes: string): Promise<string> {
  const client = await visit();
  const answer = await client.say(bytes).rest();
  client.close();
  return answer;
}

/** What a visitor gets if a program answers with exactly these bytes and ends. */
async function answering(bytes: string): Promise<string> {
  const raw = new URL((await sandbox.ports.expose(3001)).url).host;
  return ask(`GET /${encodeURIComponent(bytes)} HTTP/1.1\r\nHost: ${raw}\r\n\r\n`);
}

async function webSocket(): Promise<RawClient> {
  const client = await visit();
  client.say(
    `GET /socket HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  );
  expect(await client.until("\r\n\r\n")).toContain("HTTP/1.1 101 Switching Protocols\r\n");
  return client;
}

async function pull(bytes: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${previewPort}/source?bytes=${bytes}`, {
    headers: { Host: host },
  });
  let size = 0;
  for await (const chunk of answer.body ?? []) size += chunk.length;
  return size;
}

async function seen(): Promise<{ requests: number; sent: number; left: number }> {
  const answer = await fetch(`http://127.0.0.1:${previewPort}/seen`, { headers: { Host: host } });
  return answer.json();
}

/** The number once it has not changed for a while. */
async function untilStill(read: () => Promise<number>): Promise<number> {
  for (let [last, still] = [await read(), 0]; ; ) {
    await Bun.sleep(50);
    const now = await read();
    still = now === last ? still + 1 : 0;
    if (still === 10) return now;
    last = now;
  }
}

function firstLine(answer: string): string {
  return answer.split("\r\n")[0] ?? "";
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

function pairs(raw: string[]): [string, string][] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] ?? ""]] : []));
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
