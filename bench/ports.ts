// `node_modules/.bin/bun bench/ports.ts`: a program through its preview, beside the same program directly, in one run.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { root, TestServer } from "../e2e/harness.ts";
import { interleaved, rate, timed } from "./measure.ts";

const MIB = 1024 ** 2;
const app = join(root, "e2e/preview-app.mjs");

interface Place {
  readonly origin: string;
  readonly headers: Record<string, string>;
}

const server = await TestServer.start();
const bare = Bun.spawn(["node", app], { stdout: "pipe" });
try {
  await bare.stdout.getReader().read();
  const direct: Place = { origin: "http://127.0.0.1:3000", headers: {} };
  const preview = await exposed();
  await requests(preview, direct);
  await bytes(preview, direct);
} finally {
  bare.kill();
  await server.dispose();
}

async function exposed(): Promise<Place> {
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  await sandbox.exec("cat > app.mjs", { stdin: readFileSync(app, "utf8") });
  await (await sandbox.startProcess(["node", "app.mjs"])).waitForLog("ready");
  const { host, port } = new URL((await sandbox.ports.expose(3000)).url);
  return { origin: `http://127.0.0.1:${port}`, headers: { Host: host } };
}

async function requests(preview: Place, direct: Place): Promise<void> {
  const times = await interleaved({ preview: get(preview), direct: get(direct) }, { rounds: 500 });
  for (const [name, { p50, p95 }] of Object.entries(times))
    say(`a small GET, ${name}: p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`);
  for (const [name, place] of Object.entries({ preview, direct }))
    say(`32 callers, ${name}: ${Math.round(await rate(get(place), { callers: 32, seconds: 3 }))} requests/s`);
}

async function bytes(preview: Place, direct: Place): Promise<void> {
  const size = 512 * MIB;
  for (const [name, place] of Object.entries({ preview, direct })) {
    const down = await timed(() => pull(place, size));
    const up = await timed(() => push(place, size));
    say(`512 MiB, ${name}: down ${perSecond(size, down)}, up ${perSecond(size, up)}`);
  }
}

function get({ origin, headers }: Place): () => Promise<unknown> {
  return async () => (await fetch(`${origin}/seen`, { headers })).text();
}

async function pull({ origin, headers }: Place, size: number): Promise<void> {
  const answer = await fetch(`${origin}/source?bytes=${size}`, { headers });
  for await (const _ of answer.body ?? []);
}

/** The program hashes what it gets, on both ways. */
async function push({ origin, headers }: Place, size: number): Promise<void> {
  const chunk = new Uint8Array(MIB);
  let left = size;
  const body = new ReadableStream({
    pull(to) {
      to.enqueue(chunk);
      left -= MIB;
      if (left === 0) to.close();
    },
  });
  await (await fetch(`${origin}/sink`, { method: "POST", headers, body })).text();
}

function perSecond(size: number, ms: number): string {
  return `${Math.round(size / MIB / (ms / 1000))} MiB/s`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
