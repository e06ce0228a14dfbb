import { afterAll, beforeAll, expect, test } from "bun:test";
import { type FileEvent, Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "workspace", network: "none" }, server.at);
}, 60_000);
afterAll(() => server.dispose(), 60_000);

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
}, 60_000);

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
