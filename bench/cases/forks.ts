import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { TestServer } from "../../e2e/harness.ts";
import type { Bench, Case } from "../bench.ts";
import { bareSpawn } from "../floors.ts";
import { timed } from "../measure.ts";
import { fullPageCache } from "../memory.ts";

const FILES = 64;
const FORKS = 10;
const kinds = { XFS: ["mkfs.xfs", "-q", "-m", "reflink=1"], ext4: ["mkfs.ext4", "-q"] };

/**
 * A snapshot and ten forks of a gigabyte, beside copies of it. On a loop-mounted file system of its own: on XFS copies
 * share blocks, on ext4 they cannot. Needs root and xfsprogs.
 */
export const forks: Case = {
  name: "forks",
  about: "Snapshots and forks",
  onlyIfNamed: true,
  async run(bench) {
    for (const [kind, mkfs] of Object.entries(kinds)) {
      await using parts = new AsyncDisposableStack();
      const place = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
      parts.defer(() => rmSync(place, { recursive: true, force: true }));
      const disk = join(place, "disk");
      mkdirSync(disk);
      chmodSync(place, 0o711);
      await mountNew(join(place, "image"), disk, mkfs);
      parts.defer(async () => void (await bareSpawn(["umount", disk])));
      // Twice: as pages of the file system, and as pages of the file that it lies in.
      using _cache = await fullPageCache({ atMostBytes: 2 * (2 * FORKS + 4) * 2 ** 30 });
      await measure(bench, kind, disk);
    }
  },
};

async function measure(bench: Bench, kind: string, disk: string): Promise<void> {
  const mib = bench.isShort ? 64 : 1024;
  const dataDir = join(disk, "data");
  mkdirSync(dataDir);
  const server = await TestServer.start({ dataDir });
  try {
    const parent = await Sandbox.create({ name: "parent", network: "none" }, server.at);
    const each = (mib * 1024) / FILES;
    const made = await parent.exec(
      `for i in $(seq ${FILES}); do head -c ${each}K /dev/urandom > /workspace/f$i; done; sync`,
    );
    if (made.exitCode !== 0) throw new Error(made.stderr);
    bench.say(`  ${mib} MiB in ${FILES} files on ${kind} …`);
    const from = join(dataDir, "sandboxes", parent.id);
    const copies = async (name: string, count: number) => {
      for (let i = 0; i < count; i++)
        await bareSpawn(["cp", "-a", "--reflink=never", from, join(disk, `${name}-${i}`)]);
      await bareSpawn(["sync", "--file-system", disk]);
    };
    const compared = async (what: string, ours: () => Promise<unknown>, count: number) => {
      const [own, floor] = [await cost(disk, ours), await cost(disk, () => copies(what, count))];
      bench.line(
        `${kind}: ${what}, ${mib} MiB`,
        "ms",
        [
          { role: "ours", name: "ours", value: own.ms },
          { role: "floor", name: "cp -a, one after the other, synced", value: floor.ms },
        ],
        { note: `disk taken: ours ${own.mib} MiB, copies ${floor.mib} MiB` },
      );
    };
    await compared("a snapshot with its checksum", () => parent.snapshot({ name: "one" }), 1);
    await compared(`${FORKS} forks, all running`, () => parent.fork(FORKS), FORKS);
  } finally {
    await server.dispose();
  }
}

/** Time until it is done, and what it took of the disk. */
async function cost(disk: string, work: () => Promise<unknown>): Promise<{ ms: number; mib: number }> {
  const used = async () => {
    await bareSpawn(["sync", "--file-system", disk]);
    const { blocks, bfree, bsize } = statfsSync(disk);
    return (blocks - bfree) * bsize;
  };
  const before = await used();
  const ms = await timed(work);
  return { ms, mib: Math.round(((await used()) - before) / 1024 ** 2) };
}

async function mountNew(image: string, disk: string, mkfs: readonly string[]): Promise<void> {
  await bareSpawn(["truncate", "-s", "64G", image]);
  await bareSpawn([...mkfs, image]);
  await bareSpawn(["mount", "-o", "loop", image, disk]);
  chmodSync(disk, 0o711);
}
