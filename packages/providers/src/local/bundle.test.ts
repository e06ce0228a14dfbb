import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { createLocalProvider } from "../index.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);

test("an instance keeps the keeper it was launched with; what nobody uses goes with the next upgrade", async () => {
  const keepers = () => readdirSync(join(machine.dataDir, "keepers")).sort();
  const upgraded = (name: string) => {
    cpSync(machine.bundle, join(machine.dir, name), { recursive: true });
    return createLocalProvider({ dataDir: machine.dataDir, keeperBundle: join(machine.dir, name) });
  };
  const old = await machine.launch({ network: "none" });
  mkdirSync(join(machine.dataDir, "keepers/.new-interrupted"));
  const next = machine.newRef();
  await upgraded("second").launch(next, machine.plan({ network: "none" }), soon());
  expect(keepers()).toEqual(["second", "stand-in"]);
  expect((await machine.run(old, "echo", "alive")).stdout).toBe("alive\n");
  await machine.clear();

  const last = upgraded("third");
  await last.launch(next, machine.plan({ network: "none" }), soon());
  expect(keepers()).toEqual(["second", "stand-in"]); // accepted, so nothing was installed
  await last.stop(next, "force", soon());
  await last.launch(next, machine.plan({ network: "none" }), soon());
  expect(keepers()).toEqual(["third"]);
  await last.stop(next, "force", soon());
  await last.removeDisk(next, soon());
});
