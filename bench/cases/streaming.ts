import { type Process, Sandbox } from "holdfast";
import { keeperPid, type TestServer } from "../../e2e/harness.ts";
import type { Bench, Case } from "../bench.ts";
import { removeByApi, startByApi } from "../docker-by-api.ts";
import { drain, pour } from "../floors.ts";
import { timed } from "../measure.ts";
import { PeakMemory } from "../memory.ts";

const FLOOR = "a pipe";

/** A gigabyte out of a process, and one into it. */
export const streaming: Case = {
  name: "streaming",
  about: "Streaming",
  async run(bench) {
    const server = await bench.server();
    const bytes = (bench.isShort ? 128 : 1024) * 1024 ** 2;
    const sandbox = await Sandbox.create({ network: "none" }, server.at);
    const docker = await bench.docker();
    const id = docker && (await startByApi(docker));
    const zeros = `head -c ${bytes} /dev/zero`;
    const inContainer = docker && id ? [...docker.cli, "exec", id, "sh", "-c", `${zeros}`] : undefined;
    await best(bench, `${label(bytes)} out`, bytes, {
      ours: () => readAll(sandbox, bytes),
      [FLOOR]: () => drain(["sh", "-c", `sleep 0.02; ${zeros} | cat`], bytes),
      ...(inContainer && { "docker exec": () => drain(inContainer, bytes) }),
      ...(docker && { "docker run, its log": () => dockerLogs([...docker.cli], docker.image, bytes) }),
    });
    await best(bench, `${label(bytes)} in`, bytes, {
      ours: () => writeAll(sandbox, bytes),
      [FLOOR]: () => pour(["sh", "-c", "cat | wc -c"], bytes),
      ...(docker &&
        id && { "docker exec": () => pour([...docker.cli, "exec", "-i", id, "wc", "-c"], bytes) }),
    });
    await stalledReader(bench, server, sandbox, bytes);
    if (docker && id) await removeByApi(docker, id);
    await sandbox.delete({ force: true });
  },
};

/** The best of three, in turns: a rate is spoiled by whatever else wants the disk, and never improved. */
async function best(
  bench: Bench,
  what: string,
  bytes: number,
  contenders: Record<string, () => Promise<unknown>>,
): Promise<void> {
  bench.say(`  ${what} …`);
  const least = new Map<string, number>();
  for (let round = 0; round < (bench.isShort ? 2 : 3); round++) {
    for (const [name, run] of Object.entries(contenders)) {
      bench.signal.throwIfAborted();
      least.set(name, Math.min(least.get(name) ?? Number.POSITIVE_INFINITY, await timed(run)));
    }
  }
  const entries = [...least].map(([name, ms]) => ({
    role: name === "ours" ? ("ours" as const) : name === FLOOR ? ("floor" as const) : ("peer" as const),
    ...{ name, value: bytes / 1e3 / ms },
  }));
  bench.line(what, "MB/s", entries, { aims: [{ to: FLOOR, atLeast: 0.5 }] });
}

async function readAll(sandbox: Sandbox, bytes: number): Promise<void> {
  const process = await flowing(sandbox, bytes);
  let seen = 0;
  for await (const event of process.logs({ follow: true })) {
    if (event.type === "stdout") seen += event.bytes.length;
    if (event.type === "truncated") throw new Error(`bytes ${event.from} to ${event.to} were lost`);
  }
  if (seen !== bytes) throw new Error(`${seen} of ${bytes} bytes arrived`);
}

/** It begins a moment after it was started: nobody waits for a reader before there is one. */
function flowing(sandbox: Sandbox, bytes: number): Promise<Process> {
  return sandbox.startProcess(`sleep 0.02; head -c ${bytes} /dev/zero`);
}

/** By `write`, in pieces; the process counts them. */
async function writeAll(sandbox: Sandbox, bytes: number): Promise<void> {
  const process = await sandbox.startProcess(["wc", "-c"]);
  const piece = new Uint8Array(8 * 1024 ** 2);
  for (let left = bytes; left > 0; left -= piece.length) await process.write(piece.subarray(0, left));
  await process.closeStdin();
  let counted = "";
  for await (const event of process.logs({ follow: true }))
    if (event.type === "stdout") counted += new TextDecoder().decode(event.bytes);
  if (Number(counted) !== bytes) throw new Error(`${counted.trim()} of ${bytes} bytes got in`);
}

/** `docker logs --follow` of a container that writes: its log goes to the disk, as ours does. */
async function dockerLogs(cli: string[], image: string, bytes: number): Promise<void> {
  // Lines: the daemon keeps its log in lines, and one of a gigabyte would be none that anybody writes.
  const write = `yes 0123456789012345678901234567890123456789012345678901234567890 | head -c ${bytes}`;
  const command = [...cli, "run", "-d", "--network", "none", image, "sh", "-c", write];
  const started = Bun.spawnSync(command);
  const id = started.stdout.toString().trim();
  if (started.exitCode !== 0) throw new Error(started.stderr.toString());
  await drain([...cli, "logs", "--follow", id], bytes);
  Bun.spawnSync([...cli, "rm", "-f", id]);
}

/** Reads a little, then nothing for a while, then the rest. */
async function stalledReader(
  bench: Bench,
  server: TestServer,
  sandbox: Sandbox,
  bytes: number,
): Promise<void> {
  bench.say("  a reader that stalls …");
  const process = await flowing(sandbox, bytes);
  const pids = { keeper: await keeperPid(sandbox), server: server.pid };
  using memory = new PeakMemory(Object.values(pids));
  const stallMs = bench.isShort ? 2_000 : 10_000;
  let [seen, lost, stalled] = [0, 0, false];
  for await (const event of process.logs({ follow: true })) {
    if (event.type === "stdout") seen += event.bytes.length;
    if (event.type === "truncated") lost += event.to - event.from;
    if (!stalled && seen > 0) {
      stalled = true;
      await Bun.sleep(stallMs);
    }
  }
  if (seen + lost !== bytes) throw new Error(`${seen} bytes and ${lost} lost are not ${bytes}`);
  const grown = memory.grownMiB();
  bench.line(
    `memory with a reader that stalls for ${stallMs / 1000} s in ${label(bytes)}, growth at most`,
    "MiB",
    [{ role: "ours", name: "ours", value: Math.max(...grown) }],
    {
      aims: [{ atMost: 96 }],
      note: `keeper ${grown[0]?.toFixed(0)} MiB, server ${grown[1]?.toFixed(0)} MiB; ${seen} bytes arrived, ${lost} were told as lost`,
    },
  );
}

function label(bytes: number): string {
  return bytes === 2 ** 30 ? "1 GiB" : `${bytes / 1024 ** 2} MiB`;
}
