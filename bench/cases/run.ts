import { Sandbox } from "holdfast";
import { holdfastBin } from "../../e2e/harness.ts";
import type { Case } from "../bench.ts";
import { bareSpawn } from "../floors.ts";
import type { Contender } from "../measure.ts";

const ALONE = "the command alone";

/** What `holdfast run` adds to its command, and of what parts. */
export const run: Case = {
  name: "run",
  about: "holdfast run -- true",
  async run(bench) {
    const server = await bench.server();
    const env = { ...process.env, HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
    const cli = async (args: string[]) => {
      const child = Bun.spawn([holdfastBin, ...args], { env, stdin: "ignore", stdout: "ignore" });
      if ((await child.exited) !== 0) throw new Error(`holdfast ${args.join(" ")} failed`);
    };
    const alone: Contender = { role: "floor", name: ALONE, run: () => bareSpawn(["true"]) };
    for (const network of ["none", "full"]) {
      const command = ["run", "--network", network, "--", "true"];
      await bench.compare(
        `network ${network}`,
        [{ role: "ours", name: "ours", run: () => cli(command) }, alone],
        { rounds: 20, aims: network === "none" ? [{ atMost: 100 }] : [] },
      );
    }
    let made: Sandbox | undefined;
    const parts: Record<string, () => Promise<unknown>> = {
      "the start of the command line (--version)": () => cli(["--version"]),
      "one request (ls -q)": () => cli(["ls", "-q"]),
      "create, by the SDK": async () => {
        made = await Sandbox.create({ network: "none" }, server.at);
      },
      "exec, by the SDK": async () => made?.exec(["true"]),
      "delete until it is gone, by the SDK": async () => made?.delete({ force: true }),
    };
    if (bench.isShort) return;
    // In this order, in turns: each needs what the one before has made.
    const contenders = Object.entries(parts).map(([name, run]) => ({ role: "peer" as const, name, run }));
    await bench.compare("its parts", contenders, { rounds: 20 });
  },
};
