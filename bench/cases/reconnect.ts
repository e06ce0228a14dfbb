import { Sandbox } from "holdfast";
import type { TestServer } from "../../e2e/harness.ts";
import { type Bench, type Case, manySandboxes } from "../bench.ts";
import { bareSpawn } from "../floors.ts";
import { timed, timedEach } from "../measure.ts";

/** From the start of the next server, after `kill -9`, to the answer of a command in a sandbox that ran on. */
export const reconnect: Case = {
  name: "reconnect",
  about: "After kill -9 of the server",
  async run(bench) {
    const server = await bench.newServer();
    await one(bench, server, "its start until the first command on a local sandbox", { atMost: 300 });
    const docker = await bench.docker();
    if (docker !== undefined)
      await one(bench, docker.server, "its start until the first command on a container", { atMost: 300 });
    if (!bench.isShort) await many(bench, server, 300);
  },
};

const RUNTIME = "the start of the runtime with an empty program";

async function one(bench: Bench, server: TestServer, what: string, aim: { atMost: number }): Promise<void> {
  const { id } = await Sandbox.create({ network: "none" }, server.at);
  await bench.compare(
    what,
    [
      {
        role: "ours",
        name: "ours",
        run: async () => {
          await server.signal("SIGKILL");
          const ms = await timed(async () => {
            await server.boot();
            await answers(await Sandbox.get(id, server.at));
          });
          return { ms };
        },
      },
      { role: "floor", name: RUNTIME, run: () => bareSpawn([process.execPath, "-e", "0"]) },
    ],
    { rounds: 10, warmUps: 1, atMostSeconds: 60, aims: [aim] },
  );
  await (await Sandbox.get(id, server.at)).delete({ force: true });
}

async function many(bench: Bench, server: TestServer, count: number): Promise<void> {
  bench.say(`  ${count} sandboxes …`);
  const made = await manySandboxes(server, count);
  await server.signal("SIGKILL");
  const ready = await timed(() => server.boot());
  const first = made[0] as Sandbox;
  const firstAnswer = await timed(() => answers(first));
  const all = await timedEach(count, 16, (i) => answers(made[i] as Sandbox));
  bench.line(`${count} sandboxes: its start until it is ready`, "ms", [
    { role: "ours", name: "ours", value: ready },
  ]);
  bench.line(`${count} sandboxes: from then until one has answered`, "ms", [
    { role: "ours", name: "ours", value: firstAnswer },
  ]);
  bench.line(`${count} sandboxes: from then until each has answered`, "ms", [
    { role: "ours", name: "ours", value: all },
  ]);
  await server.deleteAll();
}

/** The same instance as before. */
async function answers(sandbox: Sandbox): Promise<void> {
  const { exitCode } = await sandbox.exec(["/bin/true"], { ifGeneration: 1 });
  if (exitCode !== 0) throw new Error(`${sandbox.id} answered with ${exitCode}`);
}
