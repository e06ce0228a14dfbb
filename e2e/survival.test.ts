import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox } from "holdfast";
import { hostProcesses, keeperPid, killKeeper, TestServer } from "./harness.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.dispose());

test("kill -9 of the server in mid-stream: the same process, and every byte exactly once", async () => {
  const sandbox = await Sandbox.create({ name: "stream", network: "none" }, server.at);
  const lines = 3_000;
  const counter = await sandbox.startProcess(
    `for i in $(seq ${lines}); do echo "line $i"; sleep 0.001; done`,
  );
  let text = "";
  let killed: Promise<void> | undefined;
  for await (const event of counter.logs({ follow: true })) {
    if (event.type === "stdout") text += new TextDecoder().decode(event.bytes);
    if (killed === undefined && text.length > 5_000) killed = server.restart("SIGKILL");
  }
  await killed;
  expect(text).toBe(Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join(""));
  const after = await (await Sandbox.get("stream", server.at)).getProcess(counter.processId);
  expect(after.pid).toBe(counter.pid);
  expect(await after.wait()).toMatchObject({ state: "exited", exitCode: 0 });
  expect((await Sandbox.get("stream", server.at)).info).toMatchObject({ generation: 1, state: "running" });
});

test("an exec during whose run the server dies still gives its one answer", async () => {
  const sandbox = await Sandbox.create({ name: "once", network: "none" }, server.at);
  const running = sandbox.exec("echo run >> /workspace/runs; sleep 1; wc -l < /workspace/runs");
  await Bun.sleep(300);
  await server.restart("SIGKILL");
  expect(await running).toMatchObject({ stdout: "1\n", exitCode: 0 });
});

test("files survive a stop, processes do not, and the answer says so", async () => {
  const sandbox = await Sandbox.create({ name: "files", network: "none" }, server.at);
  await sandbox.exec("echo kept > /workspace/a; echo home > ~/b; sleep 1000 &");
  await sandbox.stop();
  expect(await hostProcesses(sandbox.id)).toEqual([]);
  const { stdout, generation, continuity } = await sandbox.exec("cat /workspace/a ~/b; pgrep sleep");
  expect({ stdout, generation, continuity }).toEqual({
    stdout: "kept\nhome\n",
    generation: 2,
    continuity: "same-filesystem",
  });
});

test("a keeper that is killed is noticed, explained, and replaced on the next use only", async () => {
  const sandbox = await Sandbox.create({ name: "lost", network: "none" }, server.at);
  await sandbox.exec("echo still > /workspace/here");
  await killKeeper(sandbox);
  expect((await Sandbox.get("lost", server.at)).info).toMatchObject({
    state: "stopped",
    lastDeath: { cause: "keeper_lost" },
  });
  expect(await hostProcesses(sandbox.id)).toEqual([]);
  expect(await sandbox.exec("cat /workspace/here")).toMatchObject({ stdout: "still\n", generation: 2 });
});

test("a sandbox that hangs keeps no restarted server from serving the others", async () => {
  const frozen = await Sandbox.create({ name: "frozen", network: "none" }, server.at);
  const other = await Sandbox.create({ name: "other", network: "none" }, server.at);
  const keeper = await keeperPid(frozen);
  process.kill(keeper, "SIGSTOP");
  const stopping = frozen.stop();
  while ((await Sandbox.get("frozen", server.at)).state !== "stopping") await Bun.sleep(10);
  await server.restart("SIGKILL");
  expect(await other.exec("echo here")).toMatchObject({ stdout: "here\n", generation: 1 });
  expect((await Sandbox.get("frozen", server.at)).state).toBe("stopping");
  process.kill(keeper, "SIGCONT");
  expect((await stopping).state).toBe("stopped");
});

test("delete leaves neither process nor directory", async () => {
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  await sandbox.exec("mkdir -p /workspace/deep/er && chmod 000 /workspace/deep; setsid sleep 1000 & disown");
  await sandbox.delete();
  expect(await hostProcesses(sandbox.id)).toEqual([]);
  const left = [...new Bun.Glob(`**/*${sandbox.id}*`).scanSync({ cwd: server.dataDir, onlyFiles: false })];
  expect(left).toEqual([]);
});
