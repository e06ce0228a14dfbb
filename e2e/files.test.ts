import { afterAll, beforeAll, expect, test } from "bun:test";
import { HoldfastError, Sandbox } from "holdfast";
import { keeperPid, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "files", network: "none" }, server.at);
});
afterAll(() => server.dispose());

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
});

test.each([
  ["server", "a write"],
  ["keeper", "a write"],
  ["server", "a tar upload"],
  ["keeper", "a tar upload"],
] as const)(
  "kill -9 of the %s in the middle of %s leaves the old content, and nothing half-made",
  async (victim, what) => {
    const { files } = sandbox;
    await files.write("/workspace/tree/precious", "old", { parents: true });
    const gone = Promise.withResolvers<void>();
    const archive = await Array.fromAsync(await files.readTar("/workspace/tree"));
    const slow = slowly(
      what === "a write" ? [new Uint8Array(4_000_000)] : archive.map(withOtherContent),
      gone.promise,
    );
    const writing =
      what === "a write"
        ? files.write("/workspace/tree/precious", slow)
        : files.writeTar("/workspace/tree", slow);
    const ended = writing.catch((error) => error);
    const half = "cat $(find /workspace/tree/.holdfast-tmp-* -type f) < /dev/null | head -c 1 | wc -c";
    while ((await sandbox.exec(half)).stdout !== "1\n") await Bun.sleep(20);
    if (victim === "server") await server.restart("SIGKILL");
    else process.kill(await keeperPid(sandbox), "SIGKILL");
    gone.resolve();
    expect(await ended).toMatchObject({ name: "HoldfastError" });
    expect(await onceItIsBack(() => files.readText("/workspace/tree/precious"))).toBe("old");
    const left = "ls -A /workspace/tree | grep tmp; ls /.holdfast/state/files/pending";
    while ((await sandbox.exec(left)).stdout !== "") await Bun.sleep(20); // a killed server's keeper sees the end itself
  },
  120_000,
);

/** A server that has not yet noticed that the keeper is gone says to try again. */
async function onceItIsBack<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "keeper_lost" && error.started === "no"))
        throw error;
      await Bun.sleep(20);
    }
  }
}

/** The pieces, then nothing more until told so. */
function slowly(pieces: Uint8Array[], until: Promise<void>): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream<Uint8Array>({
    async pull(to) {
      const piece = left.shift();
      if (piece !== undefined) return to.enqueue(piece);
      await until;
      to.close();
    },
  });
}

/** The archive as it was up to its end mark, which then never comes. */
function withOtherContent(piece: Uint8Array): Uint8Array {
  const text = Buffer.from(piece).toString("latin1").replace("old", "new");
  return Buffer.from(text.slice(0, -1024), "latin1");
}
