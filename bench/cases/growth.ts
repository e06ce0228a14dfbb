import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStore } from "@holdfast/store";
import { Sandbox } from "holdfast";
import { type Bench, type Case, manySandboxes } from "../bench.ts";
import { inSqlite, instantLifecycle, leaseRows, tick } from "../instant-lifecycle.ts";
import { type Summary, takeTurns, timedEach } from "../measure.ts";

/** What must not grow with what is there: each beside the same with little of it. */
export const growth: Case = {
  name: "growth",
  about: "Growth: each must stay flat",
  async run(bench) {
    await ticks(bench);
    await lists(bench);
    await logReads(bench);
    await execs(bench);
  },
};

/** What the reconciler asks of the store when nothing is due. */
async function ticks(bench: Bench): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const path = join(dir, "holdfast.db");
  const store = new SqliteStore({ path, newId: () => "installation", now: Date.now });
  try {
    const measured = async (leases: number) => {
      inSqlite(path, leaseRows(leases));
      return summaryOfCalls(bench, 1_000, () => tick(store));
    };
    const counts = bench.isShort ? [1_000, 10_000] : [1_000, 10_000, 100_000];
    await flat(bench, "an idle tick of the reconciler, leases", counts, measured, 2);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A page of a hundred, from the middle. */
async function lists(bench: Bench): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const store = new SqliteStore({
    path: join(dir, "holdfast.db"),
    newId: () => "installation",
    now: Date.now,
  });
  const lifecycle = instantLifecycle(store);
  try {
    await lifecycle.start();
    let there = 0;
    const measured = async (count: number) => {
      const missing = count - there;
      await timedEach(missing, 8, (i) => lifecycle.sandboxes.create({ name: `listed-${there + i}` }));
      there = count;
      return summaryOfCalls(bench, 200, async () => {
        const { holdings } = await lifecycle.sandboxes.list({
          limit: 100,
          after: Math.floor(count / 2) - 100,
        });
        if (holdings.length !== 100) throw new Error(`a page had ${holdings.length} sandboxes`);
      });
    };
    await flat(
      bench,
      "a page of 100 sandboxes, of",
      bench.isShort ? [200, 1_000] : [200, 10_000],
      measured,
      2,
    );
  } finally {
    await lifecycle.close();
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** 64 KiB from the end of a log that is as long as this. */
async function logReads(bench: Bench): Promise<void> {
  const server = await bench.server();
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  const window = 65_536;
  const measured = async (mib: number) => {
    const process = await sandbox.startProcess(`head -c ${mib * 1024 ** 2} /dev/zero`);
    await process.wait();
    const { log } = await process.info();
    return summaryOfCalls(bench, 200, async () => {
      let seen = 0;
      for await (const event of process.logs({ since: log.nextOffset - window }))
        if (event.type === "stdout") seen += event.bytes.length;
      if (seen !== window) throw new Error(`${seen} of ${window} bytes of the log were read`);
    });
  };
  await flat(
    bench,
    "64 KiB of a log, at an offset of MiB",
    bench.isShort ? [1, 64] : [1, 1_024],
    measured,
    1.5,
  );
  await sandbox.delete({ force: true });
}

async function execs(bench: Bench): Promise<void> {
  const server = await bench.newServer();
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  let alive = 1;
  const measured = async (count: number) => {
    await manySandboxes(server, count - alive);
    alive = count;
    return summaryOfCalls(bench, bench.isShort ? 60 : 300, async () => {
      if ((await sandbox.exec(["/bin/true"])).exitCode !== 0) throw new Error("an exec failed");
    });
  };
  await flat(bench, "exec, sandboxes alive", bench.isShort ? [1, 20] : [1, 100, 300], measured, 1.2);
  await server.deleteAll();
}

async function summaryOfCalls(bench: Bench, rounds: number, run: () => Promise<unknown>): Promise<Summary> {
  const { signal } = bench;
  const { summaries } = await takeTurns([{ role: "ours", name: "ours", run }], { rounds, signal });
  return summaries[0] as Summary;
}

/** A line for each step, beside the first one. */
async function flat(
  bench: Bench,
  what: string,
  counts: readonly number[],
  measured: (count: number) => Promise<Summary>,
  atMost: number,
): Promise<void> {
  bench.say(`  ${what} ${counts.join(", ")} …`);
  let first: Summary | undefined;
  for (const count of counts) {
    const summary = await measured(count);
    const name = `with ${counts[0]?.toLocaleString("en")}`;
    const beside = first && { role: "floor" as const, name, summary: first };
    const aims = first && count === counts.at(-1) ? [{ to: name, atMost }] : [];
    const entries = [{ role: "ours" as const, name: "ours", summary }, beside];
    bench.line(`${what} ${count.toLocaleString("en")}`, "ms", entries, { aims });
    first ??= summary;
  }
}
