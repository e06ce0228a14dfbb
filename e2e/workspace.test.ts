import { afterAll, beforeAll, expect, test } from "bun:test";
import { type FileEvent, Sandbox } from "holdfast";
import { holdfastBin, run, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "workspace", network: "none" }, server.at);
});
afterAll(() => server.dispose());

test("a watch goes on over a kill -9 of the server, misses nothing, and holds nothing awake", async () => {
  const watch = sandbox.watch("/workspace");
  expect(await next(watch)).toMatchObject({ type: "ready" });
  await sandbox.exec("mkdir a && echo 1 > a/first");
  expect(await until(watch, "/workspace/a/first")).toMatchObject({ type: "created", directory: false });
  await sandbox.startProcess("sleep 0.2; echo > a/while-away; sleep 2; echo > a/last", { cwd: "/workspace" });
  await server.restart("SIGKILL");
  const seen: FileEvent[] = [];
  for await (const event of watch) {
    seen.push(event);
    if ("path" in event && event.path === "/workspace/a/last") break;
  }
  expect(seen.map(({ type }) => type)).not.toContain("resync");
  expect(seen.flatMap((event) => ("path" in event ? [event.path] : []))).toContain("/workspace/a/while-away");
  expect((await sandbox.why()).heldAwakeBy.join()).not.toContain("watch");
  await expect(next(sandbox.watch("/nowhere"))).rejects.toMatchObject({ code: "not_found" });
  await sandbox.stop();
  await expect(next(sandbox.watch("/workspace"))).rejects.toMatchObject({ code: "wrong_state" });
});

test("a clone with progress, its state and its difference, by SDK and command line; it wakes the sandbox", async () => {
  const make = [
    "git init -q -b main origin && cd origin && git config user.name a && git config user.email a@example.com",
    "seq 300 | while read i; do echo $i > f$i; done; git add -A; git commit -qm one; git branch topic",
  ];
  expect(await sandbox.exec(make.join("\n"), { cwd: "/workspace" })).toMatchObject({ exitCode: 0 });
  await sandbox.stop();
  const phases = new Set<string>();
  const cloned = await sandbox.git.clone("file:///workspace/origin", "/workspace/app", {
    branch: "topic",
    depth: 1,
    onProgress: ({ phase }) => phases.add(phase),
  });
  expect(cloned).toMatchObject({ status: "cloned", path: "/workspace/app", branch: "topic" });
  expect([...phases]).toContain("Receiving objects");
  await sandbox.files.write("/workspace/app/f7", "seven\n");
  const cli = { env: { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token } };
  const status = await run([holdfastBin, "git", "status", "workspace", "/workspace/app", "-o", "json"], cli);
  expect(JSON.parse(status.stdout)).toEqual(await sandbox.git.status("/workspace/app"));
  const diff = await run([holdfastBin, "git", "diff", "workspace", "/workspace/app"], cli);
  expect(diff.stdout).toEndWith("-7\n+seven\n");
  const refused = await run([holdfastBin, "git", "clone", "workspace", "ext::sh", "/workspace/x"], cli);
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("https://")]);
});

async function next(watch: AsyncGenerator<FileEvent>): Promise<FileEvent> {
  const { value, done } = await watch.next();
  if (done) throw new Error("the watch has ended");
  return value;
}

async function until(watch: AsyncGenerator<FileEvent>, path: string): Promise<FileEvent> {
  for (;;) {
    const event = await next(watch);
    if ("path" in event && event.path === path) return event;
  }
}
