import { afterAll, beforeAll, expect, test } from "bun:test";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { Machine } from "../../fixtures/machine.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(10_000);

/** What the server would hear on a new connection. */
async function hears(ref: InstanceRef): Promise<string> {
  const seen = await machine.provider.observe(ref, soon());
  if (seen.state !== "running") throw new Error(`not running: ${seen.detail}`);
  expect(lstatSync(seen.keeper.path).isSocket()).toBe(true);
  const reply = await fetch("http://keeper/boot", {
    unix: seen.keeper.path,
    headers: { Connection: "close" },
  });
  return reply.text();
}

test("work inside cannot lead the server to another socket, neither of the host nor of its own", async () => {
  const path = join(machine.dir, "host.sock");
  const host = Bun.serve({ unix: path, fetch: () => new Response("the host") });
  const ref = await machine.launch({ network: "none" });
  const impostors = [
    `ln -s ${path} /.holdfast/run/keeper.sock`,
    `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "/.holdfast/run/keeper.sock", Listen => 1)'`,
    "touch /.holdfast/run/keeper.sock",
  ];
  for (const impostor of impostors) {
    const ran = await machine.run(ref, "sh", "-c", `rm -f /.holdfast/run/keeper.sock; ${impostor}`);
    expect(ran).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    expect(await hears(ref)).toContain(ref.sandboxId);
    // A server that has just started launches again what it is not sure about.
    await machine.open().launch(ref, machine.plan({ network: "none" }), soon());
    expect(await hears(ref)).toContain(ref.sandboxId);
  }
  await host.stop(true);
  await machine.clear();
});

test("the keeper's socket is not there for the work to connect to, to crowd or to remove", async () => {
  const ref = await machine.launch({ network: "none" });
  expect((await machine.run(ref, "ls", "-A", "/.holdfast/run")).stdout).toBe("");
  await machine.clear();
});
