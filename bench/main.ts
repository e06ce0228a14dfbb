// `npm run bench`: our costs beside their floor, in one interleaved run. `-- --json` gives the data.
import { readdirSync, readFileSync } from "node:fs";
import { Sandbox } from "holdfast";
import { TestServer } from "../e2e/harness.ts";
import { BareShell, barePipe, bareSpawn } from "./bare.ts";
import { interleaved, rate, type Times, timed } from "./measure.ts";

const asJson = process.argv.includes("--json");
const rows: { what: string; ours: string; floor: string; ratio: string }[] = [];
const say = (text: string) => process.stderr.write(`${text}\n`);

say("starting a server …");
const server = await TestServer.start();
try {
  await starting();
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  await execs(sandbox);
  await sessions(sandbox);
  await throughput(sandbox);
  await memory();
} finally {
  await server.dispose();
}
print();

async function starting(): Promise<void> {
  say("restart, create, first command …");
  await Sandbox.create({ network: "none" }, server.at);
  await server.signal("SIGTERM");
  const restart = await timed(() => server.boot());
  row("start of the server until it is ready, one sandbox found again", ms(restart));
  for (const network of ["none", "full"] as const) {
    const created = await interleaved(
      {
        create: async () => {
          const sandbox = await Sandbox.create({ network }, server.at);
          await sandbox.exec(["true"]);
          await sandbox.delete({ force: true });
        },
        bwrap: () => bareSpawn(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]),
      },
      { rounds: 20 },
    );
    row(
      `create, first exec, delete (network ${network}), beside bwrap running true`,
      both(created.create),
      both(created.bwrap),
      ratio(created.create, created.bwrap),
    );
  }
}

async function execs(sandbox: Sandbox): Promise<void> {
  say("exec …");
  const exec = await interleaved(
    { ours: () => sandbox.exec("true"), floor: () => bareSpawn(["bash", "-c", "true"]) },
    { rounds: 500 },
  );
  row(
    "exec `bash -c true`, beside a bare spawn",
    both(exec.ours),
    both(exec.floor),
    ratio(exec.ours, exec.floor),
  );
  for (const callers of [8, 32]) {
    const ours = await rate(() => sandbox.exec("true"), { callers, seconds: 3 });
    const floor = await rate(() => bareSpawn(["bash", "-c", "true"]), { callers, seconds: 3 });
    row(
      `exec with ${callers} callers, beside bare spawns`,
      `${Math.round(ours)}/s`,
      `${Math.round(floor)}/s`,
      (ours / floor).toFixed(2),
    );
  }
}

async function sessions(sandbox: Sandbox): Promise<void> {
  say("session …");
  const session = await sandbox.createSession();
  const bare = new BareShell();
  const contenders = { ours: () => session.exec("X=$((X+1))"), floor: () => bare.exec("X=$((X+1))") };
  for (const [pace, pauseMs] of [
    ["back to back", undefined],
    ["10 ms apart", 10],
  ] as const) {
    const times = await interleaved(contenders, { rounds: 300, ...(pauseMs && { pauseMs }) });
    row(
      `session command, ${pace}, beside a bare pipe to bash`,
      both(times.ours),
      both(times.floor),
      ratio(times.ours, times.floor),
    );
  }
  await bare.close();
}

async function throughput(sandbox: Sandbox): Promise<void> {
  say("throughput …");
  const bytes = 2 ** 30;
  const floor = await barePipe(bytes);
  const process = await sandbox.startProcess(`head -c ${bytes} /dev/zero`);
  let seen = 0;
  const ours = await timed(async () => {
    for await (const event of process.logs({ follow: true }))
      if (event.type === "stdout") seen += event.bytes.length;
  });
  const speed = (time: number) => `${Math.round(bytes / 1e6 / (time / 1000))} MB/s`;
  row(
    `1 GiB of a process's output (${seen} bytes arrived), beside cat through a pipe`,
    speed(ours),
    speed(floor),
    (floor / ours).toFixed(2),
  );
}

/** Private memory of keepers that have just started. */
async function memory(): Promise<void> {
  say("memory …");
  const fresh = await Promise.all(
    Array.from({ length: 10 }, () => Sandbox.create({ network: "none" }, server.at)),
  );
  const all = fresh.map(({ id }) => privateKiB(`hf-${id}-`));
  row(
    "private memory of a fresh sandbox, keeper and bubblewrap",
    `${(all.reduce((a, b) => a + b, 0) / all.length / 1024).toFixed(1)} MiB`,
  );
}

function privateKiB(marker: string): number {
  let total = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker)) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      for (const match of rollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+)/gm)) total += Number(match[1]);
    } catch {
      // it ended while we looked
    }
  }
  return total;
}

function row(what: string, ours: string, floor = "", ratio = ""): void {
  rows.push({ what, ours, floor, ratio });
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function both({ p50, p95 }: Times): string {
  return `${ms(p50)} (p95 ${ms(p95)})`;
}

function ratio(ours: Times, floor: Times): string {
  return (ours.p50 / floor.p50).toFixed(2);
}

function print(): void {
  if (asJson) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else {
    process.stdout.write("| what | ours | floor | ratio |\n|---|---|---|---|\n");
    for (const { what, ours, floor, ratio } of rows)
      process.stdout.write(`| ${what} | ${ours} | ${floor} | ${ratio} |\n`);
  }
  process.exit(0);
}
