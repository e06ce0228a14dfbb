// What `holdfast run` costs beyond the command itself, and of what parts: `bun bench/run.ts`, `-- --json` for the data.
import { Sandbox } from "holdfast";
import { holdfastBin, TestServer } from "../e2e/harness.ts";
import { bareSpawn } from "./bare.ts";
import { interleaved, type Times } from "./measure.ts";

const ROUNDS = 30;

let made: Sandbox | undefined;

const server = await TestServer.start();
try {
  const env = { ...process.env, HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  const times = await interleaved(
    {
      "the command alone (a bare spawn of true)": () => bareSpawn(["true"]),
      "the start of the runtime (bun with an empty program)": () => bareSpawn([process.execPath, "-e", "0"]),
      "the start of the CLI (holdfast --version)": () => cli(["--version"]),
      "one request (holdfast ls -q)": () => cli(["ls", "-q"]),
      "create, by the SDK": () => create("none"),
      "exec true, by the SDK": () => exec(),
      "delete until it is gone, by the SDK": () => remove(),
      "holdfast run --network none -- true": () => cli(["run", "--network", "none", "--", "true"]),
      "holdfast run -- true": () => cli(["run", "--", "true"]),
    },
    { rounds: ROUNDS },
  );
  if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify(times, null, 2)}\n`);
  else
    for (const [what, { p50, p95 }] of Object.entries<Times>(times))
      process.stdout.write(line(what, p50, p95));

  async function create(network: "none" | "full"): Promise<void> {
    made = await Sandbox.create({ network }, server.at);
  }
  async function exec(): Promise<void> {
    await made?.exec(["true"]);
  }
  async function remove(): Promise<void> {
    await made?.delete({ force: true });
  }
  async function cli(args: string[]): Promise<void> {
    const child = Bun.spawn([holdfastBin, ...args], { env, stdin: "ignore", stdout: "ignore" });
    if ((await child.exited) !== 0) throw new Error(`holdfast ${args.join(" ")} failed`);
  }
} finally {
  await server.dispose();
}

function line(what: string, p50: number, p95: number): string {
  return `${what.padEnd(60)} ${p50.toFixed(1).padStart(7)} ms  p95 ${p95.toFixed(1).padStart(7)} ms\n`;
}
