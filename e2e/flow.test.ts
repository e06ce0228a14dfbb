import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Sandbox } from "holdfast";
import { keeperPid, TestServer } from "./harness.ts";

const GIB = 2 ** 30;
/** A stalled or fast reader may cost buffers, never a share of what flows. */
const FLAT_MIB = 96;

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ network: "none" }, server.at);
});
afterAll(() => server.dispose());

test.each([
  ["at full speed", 0],
  ["by a reader that stalls for 10 s", 10_000],
])(
  "1 GiB of output, followed %s: every byte, and memory stays flat",
  async (_, stallMs) => {
    const expected = new Bun.CryptoHasher("sha256").update("\n");
    for (let i = 0; i < 1024; i++) expected.update(new Uint8Array(GIB / 1024));
    // It begins when somebody follows it: a log that nobody reads keeps its last part only.
    const begins = `echo; until rm /workspace/go 2>/dev/null; do sleep 0.05; done; head -c ${GIB} /dev/zero`;
    const process = await sandbox.startProcess(begins);
    const memory = await watchMemory();
    const hash = new Bun.CryptoHasher("sha256");
    let bytes = 0;
    let stalled = stallMs === 0;
    for await (const event of process.logs({ follow: true })) {
      expect(event.type).not.toBe("truncated");
      if (!("bytes" in event)) continue;
      if (bytes === 0) await sandbox.files.write("/workspace/go", "");
      hash.update(event.bytes);
      bytes += event.bytes.length;
      if (!stalled && bytes > 10_000_000) {
        stalled = true;
        await Bun.sleep(stallMs);
      }
    }
    expect(bytes).toBe(GIB + 1);
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
    const grown = memory.stop();
    for (const [name, mib] of Object.entries(grown))
      expect([name, mib, mib < FLAT_MIB]).toEqual([name, mib, true]);
  },
  120_000,
);

/** How much the resident memory of server and keeper grows, at most, in MiB. */
async function watchMemory(): Promise<{ stop(): Record<string, number> }> {
  const pids = { server: server.pid, keeper: await keeperPid(sandbox) };
  const first = { server: residentMiB(pids.server), keeper: residentMiB(pids.keeper) };
  const most = { ...first };
  const timer = setInterval(() => {
    for (const name of ["server", "keeper"] as const)
      most[name] = Math.max(most[name], residentMiB(pids[name]));
  }, 50);
  return {
    stop() {
      clearInterval(timer);
      return { server: most.server - first.server, keeper: most.keeper - first.keeper };
    },
  };
}

function residentMiB(pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);
}
