// In the middle of a copy: the server's `cp` is one that waits until it is told to go on.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxEvent, Snapshot } from "holdfast";
import { keeperPid, TestServer } from "./harness.ts";

let bin: string;
let server: TestServer;
let parent: Sandbox;
beforeAll(async () => {
  bin = mkdtempSync(join(tmpdir(), "holdfast-held-"));
  chmodSync(bin, 0o777); // it runs as the copy's owner
  const waits = `#!/bin/sh
case "$*" in *snapshots/.new-*) into=snapshots ;; *) into=sandboxes ;; esac
[ -e ${bin}/hold-$into ] && touch ${bin}/held 2> /dev/null
while [ -e ${bin}/hold-$into ]; do sleep 0.02; done
exec /bin/cp "$@"
`;
  writeFileSync(join(bin, "cp"), waits, { mode: 0o755 });
  server = await TestServer.start({ env: { PATH: `${bin}:${process.env.PATH}` } });
  parent = await Sandbox.create({ name: "parent", network: "none" }, server.at);
  await parent.exec("echo precious > /workspace/kept; head -c 3M /dev/zero | tr '\\0' x > /workspace/big");
});
afterAll(async () => {
  await server.dispose();
  rmSync(bin, { recursive: true, force: true });
});

/** From now on copies into there wait. */
function hold(into: "snapshots" | "sandboxes"): { begun: Promise<void>; goOn: () => void } {
  const [held, holding] = [join(bin, "held"), join(bin, `hold-${into}`)];
  rmSync(held, { force: true });
  writeFileSync(holding, "");
  const begun = async () => {
    while (!existsSync(held)) await Bun.sleep(5);
  };
  return { begun: begun(), goOn: () => rmSync(holding) };
}

const drafts = () =>
  ["snapshots", "sandboxes"]
    .flatMap((dir) => readdirSync(join(server.dataDir, dir)))
    .filter((name) => name.startsWith("."));

test("kill -9 of the keeper in the middle of a snapshot: it is whole, and the sandbox comes back", async () => {
  const { begun, goOn } = hold("snapshots");
  const taking = parent.snapshot({ name: "whole" });
  await begun;
  process.kill(await keeperPid(parent), "SIGKILL");
  goOn();
  expect((await taking).info).toMatchObject({ state: "ready", checksum: expect.stringMatching(/^sha256:/) });
  expect((await parent.exec("cat /workspace/kept")).stdout).toBe("precious\n");
  expect((await parent.refresh()).generation).toBe(2);
  expect(drafts()).toEqual([]);
});

test("kill -9 of the keeper in the middle of a restore: the copy is whole; who waits is told how far it is", async () => {
  const { begun, goOn } = hold("sandboxes");
  const told = Promise.withResolvers<SandboxEvent>();
  const onProgress = (event: SandboxEvent) => {
    if (event.type === "restoring") told.resolve(event);
  };
  const restoring = Sandbox.create({ fromSnapshot: "whole", network: "none" }, { ...server.at, onProgress });
  await begun;
  process.kill(await keeperPid(parent), "SIGKILL");
  expect((await told.promise).detail).toEqual({
    snapshotId: (await Snapshot.get("whole", server.at)).id,
    copiedBytes: expect.any(Number),
    sizeBytes: 3 * 1024 * 1024 + "precious\n".length,
  });
  goOn();
  const sum = "cat /workspace/* | sha256sum";
  const [copy, original] = await Promise.all([restoring, parent].map(async (one) => (await one).exec(sum)));
  expect(copy?.stdout).toBe(original?.stdout ?? "");
  expect(drafts()).toEqual([]);
});

test("a fork tells of each of its sandboxes how far it is, and they run when it resolves", async () => {
  const told = new Map(["f-1", "f-2"].map((name) => [name, Promise.withResolvers<void>()]));
  const { goOn } = hold("sandboxes");
  const forking = parent.fork(2, {
    name: "f",
    onProgress: ({ type }, { name }) => type === "restoring" && told.get(name)?.resolve(),
  });
  await Promise.all([...told.values()].map(({ promise }) => promise));
  goOn();
  const forks = await forking;
  expect(forks.map(({ state }) => state)).toEqual(["running", "running"]);
  const said = await Promise.all(forks.map((one) => one.exec("cat /workspace/kept")));
  expect(said.map(({ stdout }) => stdout)).toEqual(["precious\n", "precious\n"]);
});
