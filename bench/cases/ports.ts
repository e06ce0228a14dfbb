import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { root } from "../../e2e/harness.ts";
import type { Case } from "../bench.ts";
import { rate, timed } from "../measure.ts";

const MIB = 1024 ** 2;
const FLOOR = "the same program directly";
const app = join(root, "e2e/preview-app.mjs");

interface Place {
  readonly origin: string;
  readonly headers: Record<string, string>;
}

/** A program through its preview, beside the same program directly. */
export const ports: Case = {
  name: "ports",
  about: "Previews",
  async run(bench) {
    const sandbox = await Sandbox.create({ network: "none" }, (await bench.server()).at);
    const bare = Bun.spawn(["node", app], { stdout: "pipe" });
    try {
      await bare.stdout.getReader().read();
      const direct: Place = { origin: "http://127.0.0.1:3000", headers: {} };
      const preview = await exposed(sandbox);
      await bench.compare(
        "a small GET",
        [
          { role: "ours", name: "ours", run: () => get(preview) },
          { role: "floor", name: FLOOR, run: () => get(direct) },
        ],
        { rounds: 300 },
      );
      const options = { callers: 32, seconds: bench.isShort ? 1 : 3 };
      bench.line("small GETs, 32 callers", "/s", [
        { role: "ours", name: "ours", value: await rate(() => get(preview), options) },
        { role: "floor", name: FLOOR, value: await rate(() => get(direct), options) },
      ]);
      const size = (bench.isShort ? 64 : 512) * MIB;
      for (const [what, move] of Object.entries({ down: pull, up: push })) {
        const speed = async (place: Place) => size / 1e3 / (await timed(() => move(place, size)));
        bench.line(`${size / MIB} MiB ${what}`, "MB/s", [
          { role: "ours", name: "ours", value: await speed(preview) },
          { role: "floor", name: FLOOR, value: await speed(direct) },
        ]);
      }
    } finally {
      bare.kill();
      await sandbox.delete({ force: true });
    }
  },
};

async function exposed(sandbox: Sandbox): Promise<Place> {
  await sandbox.exec("cat > app.mjs", { stdin: readFileSync(app, "utf8") });
  await (await sandbox.startProcess(["node", "app.mjs"])).waitForLog("ready");
  const { host, port } = new URL((await sandbox.ports.expose(3000)).url);
  return { origin: `http://127.0.0.1:${port}`, headers: { Host: host } };
}

async function get({ origin, headers }: Place): Promise<void> {
  const answer = await fetch(`${origin}/seen`, { headers });
  await answer.text();
  if (!answer.ok) throw new Error(`a GET gave ${answer.status}`);
}

async function pull({ origin, headers }: Place, size: number): Promise<void> {
  const answer = await fetch(`${origin}/source?bytes=${size}`, { headers });
  let seen = 0;
  for await (const chunk of answer.body ?? []) seen += chunk.length;
  if (seen !== size) throw new Error(`${seen} of ${size} bytes came`);
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
  const answer = await fetch(`${origin}/sink`, { method: "POST", headers, body });
  await answer.text();
  if (!answer.ok) throw new Error(`a POST gave ${answer.status}`);
}
