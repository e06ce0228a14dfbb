import { missingSsh, startSshServer } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import type { Bench, Case } from "../bench.ts";
import { execByApi, removeByApi, startByApi } from "../docker-by-api.ts";
import { bareSpawn, type CommandInC } from "../floors.ts";
import { type Contender, rate } from "../measure.ts";
import { sandboxRuntime } from "../sandbox-runtime.ts";

/** One command in a sandbox that is there, from the SDK and back. */
export const exec: Case = {
  name: "exec",
  about: "exec",
  async run(bench) {
    await using sandbox = await Sandbox.create({ network: "none" }, (await bench.server()).at);
    const floors = floorsOf(bench);
    bench.say("  warming up …");
    for (let i = 0; i < WARM_UPS; i++) await run(sandbox, commands["`true`, with bash"]);
    await sequential(bench, sandbox, floors);
    await besideDocker(bench);
    await atATime(bench, sandbox, floors);
    await sandbox.delete({ force: true });
  },
};

const FLOOR = "posix_spawn in C";
/** As many as it takes until the runtime has compiled what a call needs: what is measured is a server in use. */
const WARM_UPS = 1_000;
const commands = {
  "`true`, with bash": { ours: "true", argv: ["bash", "-c", "true"], prints: "" },
  "`true`, without a shell": { ours: ["/bin/true"], argv: ["/bin/true"], prints: "" },
  "`echo hi`, with bash": { ours: "echo hi", argv: ["bash", "-c", "echo hi"], prints: "hi\n" },
  "`echo hi`, without a shell": { ours: ["/bin/echo", "hi"], argv: ["/bin/echo", "hi"], prints: "hi\n" },
} as const;
type Command = (typeof commands)[keyof typeof commands];

function floorsOf(bench: Bench): Map<Command, CommandInC> {
  return new Map(Object.values(commands).map((command) => [command, bench.inC().of(command.argv)]));
}

async function sequential(bench: Bench, sandbox: Sandbox, floors: Map<Command, CommandInC>): Promise<void> {
  for (const [what, command] of Object.entries(commands)) {
    const floor = floors.get(command) as CommandInC;
    await bench.compare(
      what,
      [ours(sandbox, command), { role: "floor", name: FLOOR, run: () => floor.once() }],
      { rounds: 300, aims: [{ to: FLOOR, atMost: 1.4 }] },
    );
  }
  if (bench.isShort) return;
  const command = commands["`echo hi`, with bash"];
  const floor = floors.get(command) as CommandInC;
  await using parts = new AsyncDisposableStack();
  const runtime = await sandboxRuntime(bench);
  if (runtime !== undefined) parts.use(runtime);
  await bench.compare(
    "`echo hi` with bash, beside what one would use instead",
    [
      ours(sandbox, command),
      { role: "floor", name: FLOOR, run: () => floor.once() },
      {
        role: "peer",
        name: "a new bwrap each time",
        run: () => checked(bareSpawn([...bwrapAround, ...command.argv]), command),
      },
      await overSsh(bench, parts, command),
      runtime && {
        role: "peer",
        name: "@anthropic-ai/sandbox-runtime",
        run: () => checked(runtime.run("echo hi"), command),
      },
    ],
    { rounds: 60, atMostSeconds: 90 },
  );
}

/** On the same daemon, in the same image. A rest, because the daemon still clears up after its own execs for a while. */
async function besideDocker(bench: Bench): Promise<void> {
  const docker = await bench.docker();
  if (docker === undefined) return;
  const command = commands["`echo hi`, without a shell"];
  await using sandbox = await Sandbox.create({ network: "none" }, docker.server.at);
  const id = await startByApi(docker);
  const contenders: Contender[] = [
    ours(sandbox, command),
    { role: "peer", name: "docker exec by the API", run: () => execByApi(docker, id, command.argv) },
    {
      role: "peer",
      name: "docker exec by its command line",
      run: () => checked(bareSpawn([...docker.cli, "exec", id, ...command.argv]), command),
    },
  ];
  const aims = [{ to: "docker exec by the API", atMost: 1 / 15 }];
  await bench.compare("on Docker, `echo hi` without a shell, ten in a row after a rest", contenders, {
    ...{ rounds: 15, callsInARow: 10, restMs: 500, atMostSeconds: 90, aims },
  });
  await bench.compare("on Docker, `echo hi` without a shell, one of each in turn", contenders, {
    ...{ rounds: 100, atMostSeconds: 60 },
  });
  await removeByApi(docker, id);
  await sandbox.delete({ force: true });
}

async function atATime(bench: Bench, sandbox: Sandbox, floors: Map<Command, CommandInC>): Promise<void> {
  const command = commands["`true`, with bash"];
  const floor = floors.get(command) as CommandInC;
  const seconds = bench.isShort ? 1 : 3;
  for (const callers of [8, 32]) {
    bench.say(`  ${callers} callers …`);
    const options = { callers, seconds };
    const bwrap = () => bareSpawn([...bwrapAround, ...command.argv]);
    bench.line(`\`true\` with bash, ${callers} callers`, "/s", [
      { role: "ours", name: "ours", value: await rate(() => run(sandbox, command), options) },
      { role: "floor", name: FLOOR, value: await floor.rate(options) },
      bench.isShort
        ? undefined
        : { role: "peer", name: "a new bwrap each time", value: await rate(bwrap, options) },
    ]);
  }
}

function ours(sandbox: Sandbox, command: Command): Contender {
  return { role: "ours", name: "ours", run: () => run(sandbox, command) };
}

async function run(sandbox: Sandbox, command: Command): Promise<void> {
  const { ours, prints } = command;
  const { exitCode, stdout } = await sandbox.exec(typeof ours === "string" ? ours : [...ours]);
  if (exitCode !== 0 || stdout !== prints) throw new Error(`an exec gave ${exitCode}, ${stdout}`);
}

async function checked(printed: Promise<string>, { prints }: Command): Promise<void> {
  if ((await printed) !== prints) throw new Error(`printed ${await printed}`);
}

const bwrapAround = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];

/** One connection that is kept open, as `ControlMaster` does it. */
async function overSsh(
  bench: Bench,
  parts: AsyncDisposableStack,
  command: Command,
): Promise<Contender | undefined> {
  const missing = missingSsh();
  if (missing !== undefined) {
    bench.say(`  without ssh: ${missing}`);
    return undefined;
  }
  const server = await startSshServer({ env: { BENCH: "1" } });
  parts.defer(() => server.stop());
  const kept = [
    "-o",
    `ControlPath=${server.bin}/master`,
    "-o",
    "ControlPersist=yes",
    "-p",
    String(server.port),
  ];
  const ssh = [`${server.bin}/ssh`, ...kept, "127.0.0.1"];
  const master = Bun.spawn([...ssh.slice(0, 1), "-NM", ...ssh.slice(1)], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  parts.defer(() => master.kill());
  while (Bun.spawnSync([...ssh.slice(0, 1), "-O", "check", ...ssh.slice(1)]).exitCode !== 0)
    await Bun.sleep(20);
  return {
    role: "peer",
    name: "ssh with ControlMaster",
    run: () => checked(bareSpawn([...ssh, "echo hi"]), command),
  };
}
