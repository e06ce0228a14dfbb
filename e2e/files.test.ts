import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox } from "holdfast";
import { keeperPid, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "files", network: "none" }, server.at);
}, 30_000);
afterAll(() => server.dispose(), 30_000);

test("files go in and out through the SDK, and commands see them", async () => {
  const { files } = sandbox;
  await files.write("/workspace/a/b.sh", "echo $0\n", { parents: true, mode: 0o755 });
  expect((await sandbox.exec("sh /workspace/a/b.sh; stat -c %a /workspace/a/b.sh")).stdout).toBe(
    "/workspace/a/b.sh\n755\n",
  );
  const { etag } = await files.stat("/workspace/a/b.sh");
  await sandbox.exec("echo changed > /workspace/a/b.sh");
  const refused = await files.write("/workspace/a/b.sh", "mine", { ifMatch: etag }).catch((error) => error);
  expect(refused).toMatchObject({ code: "precondition_failed", started: "no" });
  expect(await files.readText("/workspace/a/b.sh", { end: 4 })).toBe("chan");
  expect([await files.exists("/workspace/a"), await files.exists("/workspace/nothing")]).toEqual([
    true,
    false,
  ]);
  await files.move("/workspace/a", "/workspace/moved");
  expect((await Array.fromAsync(files.list("/workspace", { depth: 2 }))).map(({ path }) => path)).toEqual([
    "/workspace/moved",
    "/workspace/moved/b.sh",
  ]);
  await files.delete("/workspace/moved", { recursive: true });
});

test("a file that is read wakes a sandbox that sleeps", async () => {
  await sandbox.files.write("/workspace/kept", "kept");
  await sandbox.stop();
  expect(await sandbox.files.readText("/workspace/kept")).toBe("kept");
  expect((await sandbox.refresh()).state).toBe("running");
}, 30_000);

test.each(["server", "keeper"] as const)(
  "kill -9 of the %s in the middle of a write leaves the old content, and nothing half-made",
  async (victim) => {
    await sandbox.files.write("/workspace/precious", "old");
    const gone = Promise.withResolvers<void>();
    let sent = 0;
    const slow = new ReadableStream<Uint8Array>({
      async pull(to) {
        if (sent === 4) await gone.promise; // never ends by itself
        sent += 1;
        to.enqueue(new Uint8Array(1024 * 1024));
      },
    });
    const writing = sandbox.files.write("/workspace/precious", slow).catch((error) => error);
    const half = "stat -c %s /workspace/.holdfast-tmp-* 2>/dev/null";
    while (Number((await sandbox.exec(half)).stdout) < 1024 * 1024) await Bun.sleep(20);
    if (victim === "server") await server.restart("SIGKILL");
    else process.kill(await keeperPid(sandbox), "SIGKILL");
    gone.resolve();
    expect(await writing).toMatchObject({ name: "HoldfastError" });
    expect(await sandbox.files.readText("/workspace/precious")).toBe("old");
    const left = "ls -A /workspace | grep tmp; ls /.holdfast/state/files/pending";
    while ((await sandbox.exec(left)).stdout !== "") await Bun.sleep(20); // a killed server's keeper sees the end itself
  },
  60_000,
);
