import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { findByName, isKeeper } from "./processes.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);

async function run(fixture: string, ...args: string[]): Promise<void> {
  const script = join(import.meta.dir, "../../fixtures", fixture);
  const argv = [process.execPath, script, machine.dataDir, machine.bundle, ...args];
  const child = Bun.spawn(argv, { stdio: ["ignore", "ignore", "pipe"] });
  const said = await new Response(child.stderr).text();
  expect({ exitCode: await child.exited, said }).toEqual({ exitCode: 0, said: "" });
}

test("two servers on one data dir that launch and stop the same instances leave nothing", async () => {
  const refs = [machine.newRef(), machine.newRef(), machine.newRef()];
  const plan = JSON.stringify(machine.plan({ network: "none" }));
  const server = () => run("one-of-two-servers.ts", JSON.stringify(refs), plan, "6");
  await Promise.all([server(), server()]);
  for (const ref of refs) await machine.provider.removeDisk(ref, soon());
  expect(machine.leftovers()).toEqual([]);
});

test("two servers that launch the same instance make one, with one keeper", async () => {
  const script = join(import.meta.dir, "../../fixtures/launch-forever.ts");
  for (let round = 0; round < 3; round++) {
    const ref = machine.newRef();
    const args = [
      machine.dataDir,
      machine.bundle,
      JSON.stringify(ref),
      JSON.stringify(machine.plan({ network: "none" })),
    ];
    const servers = [1, 2].map(() =>
      Bun.spawn([process.execPath, script, ...args], { stdio: ["ignore", "pipe", "inherit"] }),
    );
    await Promise.all(servers.map(({ stdout }) => untilSaid(stdout, "launched\n")));
    const keepers = (await findByName(`hf-${ref.sandboxId}-g1`)).filter(isKeeper);
    expect(keepers.length).toBe(1);
    for (const server of servers) {
      server.kill("SIGKILL");
      await server.exited;
    }
    expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
    await machine.provider.removeDisk(ref, soon());
  }
  expect(machine.leftovers()).toEqual([]);
});

async function untilSaid(stream: ReadableStream<Uint8Array>, what: string): Promise<void> {
  let said = "";
  for await (const chunk of stream) {
    said += new TextDecoder().decode(chunk);
    if (said.includes(what)) return;
  }
  throw new Error(`it ended and said ${said}`);
}
