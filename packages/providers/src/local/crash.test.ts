import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { Machine } from "../../fixtures/machine.ts";
import { findByName, isKeeper } from "./processes.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);

/** Starts a server that launches the instance, and kills it so many milliseconds later. */
async function launchAndDie(ref: InstanceRef, afterMs: number): Promise<void> {
  const script = join(import.meta.dir, "../../fixtures/launch-forever.ts");
  const plan = machine.plan({ network: "none" });
  const server = Bun.spawn(
    [process.execPath, script, machine.dataDir, machine.bundle, JSON.stringify(ref), JSON.stringify(plan)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  await server.stdout.getReader().read();
  await Bun.sleep(afterMs);
  server.kill("SIGKILL");
  await server.exited;
}

const delays = Array.from({ length: 16 }, (_, i) => i * 5);
test("a server killed at any moment of a launch leaves what the next one can finish or remove", async () => {
  const outcomes = new Set<string>();
  for (const [i, afterMs] of delays.entries()) {
    const ref = machine.newRef();
    await launchAndDie(ref, afterMs);
    // Every other time the next server goes on with the launch; else it removes what there is.
    const outcome = i % 2 === 0 ? await relaunch(ref) : "not tried";
    outcomes.add(outcome);
    const keepers = (await findByName(`hf-${ref.sandboxId}-g1`)).filter(isKeeper);
    if (outcome === "launched") expect(keepers.length).toBe(1);
    expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
    expect((await machine.provider.removeDisk(ref, soon())).state).toBe("absent");
    expect(machine.leftovers()).toEqual([]);
  }
  expect([...outcomes].sort()).toEqual(["launched", "not tried"]);
});

async function relaunch(ref: InstanceRef): Promise<string> {
  await machine.launch({ network: "none" }, ref);
  return "launched";
}

test("the end of the server's process group and session does not reach the sandbox", async () => {
  const ref = machine.newRef();
  await launchAndDie(ref, 400);
  const keeper = (await findByName(`hf-${ref.sandboxId}-g1`)).find(isKeeper);
  expect(keeper).toBeDefined();
  expect((await machine.run(ref, "echo", "alive")).stdout).toBe("alive\n");
  await machine.provider.stop(ref, "graceful", soon());
  await machine.provider.removeDisk(ref, soon());
});

test("a server with a strict umask gives its sandboxes what they need", async () => {
  const before = process.umask(0o077);
  try {
    const strict = await Machine.open();
    const ref = await strict.launch({ network: "none" });
    expect((await strict.run(ref, "sh", "-c", "umask; id -un; cat /etc/hostname")).stdout).toBe(
      "0022\nuser\nbox\n",
    );
    await strict.close();
  } finally {
    process.umask(before);
  }
});

test("a data dir of any length works", async () => {
  const far = await Machine.open({ dataDirName: `${"long".repeat(30)}/${"path".repeat(30)}` });
  try {
    const ref = await far.launch({ network: "none" });
    expect((await far.run(ref, "echo", "reached")).stdout).toBe("reached\n");
  } finally {
    await far.close();
  }
});

test("the secret is nowhere on the host once the keeper runs, and nowhere in its arguments or environment", async () => {
  const ref = await machine.launch({ network: "none" });
  const dir = join(machine.dataDir, "instances", `hf-${ref.sandboxId}-g1`);
  const { secret } = machine.plan({});
  const pid = await machine.keeperPid(ref);
  const places = [
    `/proc/${pid}/cmdline`,
    `/proc/${pid}/environ`,
    ...readdirSync(dir).map((file) => join(dir, file)),
  ];
  const grep = Bun.spawnSync(["grep", "-rls", "-D", "skip", secret, ...places.filter(existsSync)]);
  expect(grep.stdout.toString()).toBe("");
  expect(await machine.ask(ref, "boot")).toMatchObject({ secret });
  await machine.clear();
});
