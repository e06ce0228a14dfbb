// `bun bench/docker.ts [--rounds N]`: our costs on Docker beside Docker's own, in one interleaved run, on a daemon of
// its own. Every contender runs `true` in the same image without a network.
import { parseArgs } from "node:util";
import { Sandbox } from "holdfast";
import { TestServer } from "../e2e/harness.ts";
import { startDockerDaemon } from "../packages/testkit/src/docker-daemon.ts";
import { bareSpawn } from "./bare.ts";
import { interleaved, type Times, timed } from "./measure.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "30" } } });
const rounds = Number(values.rounds);
const say = (text: string) => process.stderr.write(`${text}\n`);
const rows: string[] = [];

say("starting a daemon and a server …");
const daemon = await startDockerDaemon();
const image = daemon.images.busybox;
const docker = ["docker", "--host", daemon.host];
const server = await TestServer.start({
  args: ["--providers", "docker", "--docker-image", image],
  env: { DOCKER_HOST: daemon.host },
});
try {
  await creates();
  await execs();
  await attaches();
} finally {
  await server.dispose();
  await daemon.stop();
}
process.stdout.write(`| what | p50 | p95 | beside ours |\n|---|---|---|---|\n${rows.join("\n")}\n`);
process.exit(0);

/** Until the first command has run. What was made is removed afterwards, outside of the time. */
async function creates(): Promise<void> {
  say("create …");
  const made: string[] = [];
  const times = await interleaved(
    {
      ours: async () => {
        const sandbox = await Sandbox.create({ network: "none" }, server.at);
        await sandbox.exec(["/bin/true"]);
      },
      "docker run": () => bareSpawn([...docker, "run", "--network", "none", image, "/bin/true"]),
      "create, start and exec by the API": async () => {
        const id = await startByApi();
        made.push(id);
        await execByApi(id);
      },
    },
    { rounds },
  );
  report("create to first command", times);
  await server.deleteAll();
  await Promise.all(made.map((id) => daemon.ask("DELETE", `/containers/${id}?force=1`)));
}

async function execs(): Promise<void> {
  say("exec …");
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  const id = await startByApi();
  const contenders = {
    ours: () => sandbox.exec(["/bin/true"]),
    "exec by the API": () => execByApi(id),
    "docker exec": () => bareSpawn([...docker, "exec", id, "/bin/true"]),
  };
  // The daemon goes on clearing up after its own for a while: so it gets a rest, and then one in turn without.
  report("exec, ten in a row", await interleaved(contenders, { rounds, callsInARow: 10, restMs: 500 }));
  report("exec, one of each in turn", await interleaved(contenders, { rounds: 5 * rounds }));
  await sandbox.delete({ force: true });
  await daemon.ask("DELETE", `/containers/${id}?force=1`);
}

/** From the start of a new server's process to the answer of a command in a sandbox that ran on without one. */
async function attaches(): Promise<void> {
  say("attach after kill -9 …");
  const { id } = await Sandbox.create({ network: "none" }, server.at);
  const samples: { start: number; exec: number }[] = [];
  for (let round = 0; round < Math.max(3, Math.floor(rounds / 3)); round++) {
    await server.signal("SIGKILL");
    const start = await timed(() => server.boot());
    const sandbox = await Sandbox.get(id, server.at);
    samples.push({ start, exec: await timed(() => sandbox.exec(["/bin/true"], { ifGeneration: 1 })) });
  }
  for (const part of ["start", "exec"] as const) {
    const sorted = samples.map((sample) => sample[part]).sort((a, b) => a - b);
    const what = part === "start" ? "start of the next server until it is ready" : "its first exec";
    rows.push(
      `| after kill -9: ${what} | ${ms(sorted[sorted.length >> 1] ?? 0)} | ${ms(sorted.at(-1) ?? 0)} (max) | |`,
    );
  }
}

async function startByApi(): Promise<string> {
  const made = (await daemon.ask("POST", "/containers/create", {
    Image: image,
    Entrypoint: ["/bin/sleep", "1000000"],
    HostConfig: { NetworkMode: "none" },
  })) as { Id: string };
  await daemon.ask("POST", `/containers/${made.Id}/start`);
  return made.Id;
}

/** Waits for its end, as ours does. */
async function execByApi(id: string): Promise<void> {
  const exec = (await daemon.ask("POST", `/containers/${id}/exec`, {
    Cmd: ["/bin/true"],
    AttachStdout: true,
    AttachStderr: true,
  })) as { Id: string };
  const response = await fetch(`http://docker/exec/${exec.Id}/start`, {
    unix: daemon.host.replace("unix://", ""),
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ Detach: false, Tty: false }),
  });
  await response.arrayBuffer();
  await daemon.ask("GET", `/exec/${exec.Id}/json`);
}

function report<K extends string>(what: string, times: Record<K | "ours", Times>): void {
  for (const [name, { p50, p95 }] of Object.entries<Times>(times)) {
    const beside = name === "ours" ? "" : (p50 / times.ours.p50).toFixed(2);
    rows.push(`| ${what}: ${name} | ${ms(p50)} | ${ms(p95)} | ${beside} |`);
  }
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}
