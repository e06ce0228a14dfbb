// What tests of previews put into a sandbox: a program on 127.0.0.1:3000 that does what a visitor asks for, and one on
// [::1]:3001 that answers with exactly the bytes in its request's path.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { createServer as createRawServer } from "node:net";
import { Readable } from "node:stream";

const CHUNK = Buffer.alloc(64 * 1024, "x");
const seen = { requests: 0, sent: 0, left: 0 };

const app = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://here");
  if (pathname === "/seen") return response.end(JSON.stringify(seen));
  if (request.socket.isSealed) return request.socket.destroy();
  seen.requests++;
  if (pathname === "/sink") return response.end(await digest(request).catch(() => "broken off"));
  if (pathname === "/source") return void source(Number(searchParams.get("bytes"))).pipe(response);
  if (pathname === "/events") return events(response);
  if (pathname === "/early") return response.writeHead(413).end("too much");
  if (pathname === "/moved")
    return response.writeHead(302, { Location: "http://localhost:3000/there" }).end();
  // The next request on this connection is not answered, as if it had been closed in the same moment.
  if (pathname === "/seal") request.socket.isSealed = true;
  const { method, url, httpVersion, rawHeaders } = request;
  response.end(JSON.stringify({ method, url, httpVersion, rawHeaders, from: request.socket.remotePort }));
});

app.on("upgrade", (_request, socket) => {
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  socket.on("data", (bytes) => socket.write(bytes));
  socket.on("end", () => socket.end("bye"));
  socket.on("error", () => {});
});

const raw = createRawServer((socket) => {
  socket.on("error", () => {});
  socket.once("data", (bytes) =>
    socket.end(Buffer.from(decodeURIComponent(bytes.toString().split(" ")[1].slice(1)))),
  );
});

async function digest(request) {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of request) {
    hash.update(chunk);
    size += chunk.length;
  }
  return `${size} ${hash.digest("hex")}`;
}

function source(bytes) {
  let left = bytes;
  return new Readable({
    read() {
      const chunk = CHUNK.subarray(0, Math.min(left, CHUNK.length));
      left -= chunk.length;
      seen.sent += chunk.length;
      this.push(chunk.length === 0 ? null : chunk);
    },
  });
}

function events(response) {
  response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: first\n\n");
  response.on("close", () => seen.left++);
}

app.listen(3000, "127.0.0.1", () => raw.listen(3001, "::1", () => console.log("ready")));
