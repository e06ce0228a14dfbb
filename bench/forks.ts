// `bun bench/forks.ts [--mib 1024] [--forks 10] [--on xfs|ext4]`: what a snapshot and forks cost, beside `cp -a`.
// On a loop-mounted file system of its own: on XFS copies share blocks, on ext4 they cannot. Needs root and xfsprogs.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Sandbox } from "holdfast";
import { run, TestServer } from "../e2e/harness.ts";
import { timed } from "./measure.ts";

const { values } = parseArgs({
  options: {
    mib: { type: "string", default: "1024" },
    forks: { type: "string", default: "10" },
    on: { type: "string", default: "xfs" },
  },
});
const [mib, count] = [Number(values.mib), Number(values.forks)];
const FILES = 64;

const place = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const disk = join(place, "disk");
mkdirSync(disk);
chmodSync(place, 0o711);
const say = (text: string) => process.stdout.write(`${text}\n`);
try {
  await mountOwn();
  await measure();
} finally {
  await run(["umount", disk]);
  rmSync(place, { recursive: true, force: true });
}

async function measure(): Promise<void> {
  const dataDir = join(disk, "data");
  mkdirSync(dataDir);
  const server = await TestServer.start({ dataDir });
  try {
    const parent = await Sandbox.create({ name: "parent", network: "none" }, server.at);
    const each = Math.max(1, Math.floor((mib * 1024) / FILES));
    await parent.exec(
      `for i in $(seq ${FILES}); do head -c ${each}K /dev/urandom > /workspace/f$i; done; sync`,
    );
    say(`${FILES} files, ${mib} MiB, ${values.on}`);
    await cost("a snapshot, with its checksum", () => parent.snapshot({ name: "one" }));
    await cost(`${count} forks, all running`, () => parent.fork(count));
    const from = join(dataDir, "sandboxes", parent.id);
    const copies = async (name: string) => {
      for (let i = 0; i < count; i++)
        await run(["cp", "-a", "--reflink=never", from, join(disk, `${name}-${i}`)]);
    };
    await cost(`cp -a, ${count} times`, () => copies("copy"));
    await cost(`cp -a, ${count} times, synced`, async () => {
      await copies("synced");
      await run(["sync", "--file-system", disk]);
    });
  } finally {
    await server.dispose();
  }
}

/** Time until it is done, and what it took of the disk. */
async function cost(what: string, work: () => Promise<unknown>): Promise<void> {
  await run(["sync", "--file-system", disk]);
  const before = usedBytes();
  const ms = await timed(work);
  await run(["sync", "--file-system", disk]);
  const tookMib = Math.round((usedBytes() - before) / 1024 ** 2);
  say(`${what.padEnd(32)} ${(ms / 1000).toFixed(2).padStart(8)} s ${String(tookMib).padStart(8)} MiB`);
}

function usedBytes(): number {
  const { blocks, bfree, bsize } = statfsSync(disk);
  return (blocks - bfree) * bsize;
}

async function mountOwn(): Promise<void> {
  const image = join(place, "image");
  const steps = [
    ["truncate", "-s", "64G", image],
    values.on === "xfs" ? ["mkfs.xfs", "-q", "-m", "reflink=1", image] : ["mkfs.ext4", "-q", image],
    ["mount", "-o", "loop", image, disk],
  ];
  for (const step of steps) {
    const { exitCode, stderr } = await run(step);
    if (exitCode !== 0) throw new Error(`${step.join(" ")}: ${stderr}`);
  }
  chmodSync(disk, 0o711);
}
