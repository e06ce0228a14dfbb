// What goes in comes out: `HOLDFAST_FILES_FULL=1` does it with 2 GB and 20,000 files.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { describeTree, makeOddTree } from "../packages/keeper/src/files/test-tree.ts";
import { holdfastBin, keeperPid, run, TestServer } from "./harness.ts";

const isFull = process.env.HOLDFAST_FILES_FULL === "1";
const BIG_BYTES = (isFull ? 2048 : 64) * 1024 * 1024;
const TREE_FILES = isFull ? 20_000 : 600;
// Far less than the file: what streams does not gather.
const MOST_GROWTH_MIB = 200;

let server: TestServer;
let sandbox: Sandbox;
let dir: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "copy", network: "none" }, server.at);
});
afterAll(async () => {
  await server.dispose();
  rmSync(dir, { recursive: true, force: true });
});

const ownEnv = () => ({ HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token });
const holdfast = (...args: string[]) => run([holdfastBin, ...args], { env: ownEnv() });
const copied = async (from: string, to: string, through: { HOLDFAST_URL?: string } = {}) => {
  const before = performance.now();
  const copying = run([holdfastBin, "cp", from, to], { env: { ...ownEnv(), ...through } });
  expect(await copying).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  if (isFull) process.stderr.write(`cp ${from} ${to}: ${Math.round(performance.now() - before)} ms\n`);
};

test(
  `a file of ${BIG_BYTES} bytes comes back equal, and nobody's memory grows with it`,
  async () => {
    const hash = makeBig(join(dir, "big"));
    const pids = { server: server.pid, keeper: await keeperPid(sandbox) };
    await copied(join(dir, "big"), "copy:/workspace/"); // once before, so that all code is loaded
    using watching = watchMemory(pids);
    await copied(join(dir, "big"), "copy:/workspace/again");
    expect((await sandbox.files.stat("/workspace/again", { hash: "sha256" })).sha256).toBe(hash);
    await copied("copy:/workspace/again", join(dir, "back"));
    const growth = watching.seen();
    if (isFull) process.stderr.write(`Pss, MiB: ${JSON.stringify(growth)}\n`);
    expect(hashOf(join(dir, "back"))).toBe(hash);
    for (const { first, most } of Object.values(growth)) expect(most - first).toBeLessThan(MOST_GROWTH_MIB);
    await sandbox.files.delete("/workspace/big");
  },
  isFull ? 600_000 : 120_000,
);

test(
  `a tree of ${TREE_FILES} files with odd names, links, modes and holes comes back equal`,
  async () => {
    const tree = join(dir, "tree");
    makeOddTree(tree);
    chmodSync(join(tree, "mode-3"), 0o711); // a setuid bit does not come out of a sandbox
    for (let i = 0; i < TREE_FILES; i++) {
      if (i % 100 === 0) mkdirSync(join(tree, `bulk-${i}`));
      writeFileSync(join(tree, `bulk-${i - (i % 100)}`, `file ${i}`), `content of ${i}\n`.repeat(i % 50));
    }
    const whole = describeTree(tree);
    expect(whole.size).toBeGreaterThan(TREE_FILES);
    await copied(tree, "copy:/workspace/tree");
    await copied("copy:/workspace/tree", join(dir, "tree-back"));
    expect(describeTree(join(dir, "tree-back"))).toEqual(whole);
    const through = `${holdfastBin} cp copy:/workspace/tree - | ${holdfastBin} cp - copy:/workspace/through`;
    const env = { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
    expect(await run(["sh", "-c", through], { env })).toMatchObject({ exitCode: 0 });
    await sandbox.exec("chmod u+w /workspace/tree/closed"); // no more than `rm -r` does `delete` empty what is closed
    await sandbox.files.delete("/workspace/tree", { recursive: true });
    await copied("copy:/workspace/through", join(dir, "through"));
    expect(describeTree(join(dir, "through"))).toEqual(whole);
  },
  isFull ? 600_000 : 120_000,
);

test("an upload goes on where it was after kill -9 of the server and of the keeper", async () => {
  makeBig(join(dir, "parts"), 48 * 1024 * 1024);
  const kills = [
    () => server.restart("SIGKILL"),
    async () => process.kill(await keeperPid(sandbox), "SIGKILL"),
  ];
  const arrived: number[] = [];
  let killing: Promise<unknown> = Promise.resolve();
  const uploading = sandbox.files.upload("/workspace/parts", Bun.file(join(dir, "parts")), {
    onProgress: (bytes) => {
      arrived.push(bytes);
      const kill = bytes > 0 ? kills.shift() : undefined;
      if (kill !== undefined) killing = kill();
    },
  });
  await uploading;
  await killing;
  expect(kills).toHaveLength(0);
  // It never went back to the beginning.
  expect(arrived).toEqual([...arrived].sort((a, b) => a - b));
  expect((await sandbox.files.stat("/workspace/parts", { hash: "sha256" })).sha256).toBe(
    hashOf(join(dir, "parts")),
  );
  expect((await sandbox.exec("ls -A /workspace | grep tmp; ls /.holdfast/state/files/uploads")).stdout).toBe(
    "",
  );
});

test("an upload replaces only what it was told to", async () => {
  const { files } = sandbox;
  const { etag } = await files.write("/workspace/guarded", "old");
  const content = new Blob(["new"]);
  for (const condition of [{ ifAbsent: true }, { ifMatch: "another" }])
    await expect(files.upload("/workspace/guarded", content, condition)).rejects.toMatchObject({
      code: "precondition_failed",
    });
  expect(await files.readText("/workspace/guarded")).toBe("old");
  await files.upload("/workspace/guarded", content, { ifMatch: etag });
  expect(await files.readText("/workspace/guarded")).toBe("new");
});

test("a download goes on where it was after kill -9 of cp, and begins anew if the file was changed meanwhile", async () => {
  const into = join(dir, "resumed");
  mkdirSync(into);
  makeBig(join(dir, "source"), 24 * 1024 * 1024);
  await sandbox.files.upload("/workspace/source", Bun.file(join(dir, "source")));
  const asked: (string | null)[] = [];
  using slow = halfway((range) => asked.push(range));
  const env = { HOLDFAST_URL: slow.url, HOLDFAST_TOKEN: server.token };
  /** Begins to copy; killed when something of it is there. Gives how much. */
  const interrupted = async () => {
    const cp = Bun.spawn([holdfastBin, "cp", "copy:/workspace/source", into], {
      env: { ...process.env, ...env },
    });
    while (!partsIn(into).some(({ size }) => size > 0)) await Bun.sleep(5);
    cp.kill("SIGKILL");
    await cp.exited;
    return partsIn(into);
  };
  const [left] = await interrupted();
  await copied("copy:/workspace/source", into, slow.goingOn());
  expect(asked).toEqual([null, `bytes=${left?.size}-`]);
  expect([readdirSync(into), hashOf(join(into, "source"))]).toEqual([
    ["source"],
    hashOf(join(dir, "source")),
  ]);

  slow.stalling();
  expect(await interrupted()).toHaveLength(1);
  await sandbox.exec("printf changed | dd of=/workspace/source conv=notrunc");
  await copied("copy:/workspace/source", into, slow.goingOn());
  expect(asked.slice(2)).toEqual([null, null]);
  const { sha256 } = await sandbox.files.stat("/workspace/source", { hash: "sha256" });
  expect([readdirSync(into), hashOf(join(into, "source"))]).toEqual([["source"], sha256 ?? ""]);
});

test("a directory goes into one that is there, and is merged with one of its own name, both ways", async () => {
  const [here, there] = [join(dir, "merge/app"), "/workspace/merge/app"];
  mkdirSync(here, { recursive: true });
  writeFileSync(join(here, "both"), "here");
  writeFileSync(join(here, "mine"), "mine");
  await sandbox.exec(`mkdir -p ${there} && cd ${there} && printf there > both && printf yours > yours`);
  await copied(`copy:${there}`, join(dir, "merge"));
  const texts = () => ["both", "mine", "yours"].map((name) => readFileSync(join(here, name), "utf8"));
  expect(texts()).toEqual(["there", "mine", "yours"]);
  writeFileSync(join(here, "both"), "here again");
  await copied(here, "copy:/workspace/merge");
  expect((await sandbox.exec(`cd ${there} && cat both mine yours`)).stdout).toBe("here againmineyours");
  // A file and a directory cannot be merged: nothing is copied at all.
  await sandbox.exec(`cd ${there} && rm both && mkdir both && printf other > mine`);
  const refused = await holdfast("cp", `copy:${there}`, join(dir, "merge"));
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("hint: ")]);
  expect([texts(), readdirSync(join(dir, "merge"))]).toEqual([["here again", "mine", "yours"], ["app"]]);
});

test("cp says what is wrong, and how it is said right", async () => {
  const neither = await holdfast("cp", "a", "b");
  expect([neither.exitCode, neither.stderr]).toEqual([2, expect.stringContaining("SANDBOX:/path")]);
  const missing = await holdfast("cp", "copy:/workspace/nothing", dir);
  expect([missing.exitCode, missing.stderr]).toEqual([
    1,
    expect.stringContaining("there is no /workspace/nothing"),
  ]);
});

/** What an interrupted copy has left. */
function partsIn(into: string): { size: number }[] {
  return readdirSync(into)
    .filter((name) => name.startsWith(".holdfast-cp-"))
    .map((name) => ({ size: statSync(join(into, name)).size }));
}

/** A way to the server on which a file's bytes stop coming after half of it, until told to go on. */
function halfway(onFile: (range: string | null) => void) {
  let isStalling = true;
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const reply = await fetch(server.url + pathname + search, {
        method: request.method,
        headers: request.headers,
      });
      if (!pathname.endsWith("/files")) return reply;
      onFile(request.headers.get("range"));
      if (!isStalling || reply.body === null) return reply;
      return new Response(firstHalf(reply.body, Number(reply.headers.get("content-length"))), reply);
    },
  });
  return {
    url: proxy.url.origin,
    stalling: () => {
      isStalling = true;
    },
    goingOn: () => {
      isStalling = false;
      return { HOLDFAST_URL: proxy.url.origin };
    },
    [Symbol.dispose]: () => void proxy.stop(true),
  };
}

function firstHalf(body: ReadableStream<Uint8Array>, size: number): ReadableStream<Uint8Array> {
  let passed = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    async transform(piece, to) {
      if (passed > size / 2) await new Promise(() => {});
      passed += piece.length;
      to.enqueue(piece);
    },
  });
  return body.pipeThrough(counting);
}

/** Random enough to be no accident, cheap enough for gigabytes. */
function makeBig(path: string, size = BIG_BYTES): string {
  const chunk = Buffer.allocUnsafe(4 * 1024 * 1024);
  crypto.getRandomValues(chunk.subarray(0, 65_536));
  for (let at = 65_536; at < chunk.length; at += 65_536) chunk.copy(chunk, at, 0, 65_536);
  const fd = openSync(path, "w");
  for (let at = 0; at < size; at += chunk.length) {
    chunk.writeUInt32LE(at / chunk.length);
    writeSync(fd, chunk);
  }
  closeSync(fd);
  return hashOf(path);
}

function hashOf(path: string): string {
  const { stdout } = Bun.spawnSync(["sha256sum", path]);
  return stdout.toString().split(" ")[0] ?? "";
}

function watchMemory<K extends string>(pids: Record<K, number>) {
  const seen = Object.fromEntries(
    Object.entries<number>(pids).map(([name, pid]) => [name, { first: pssMiB(pid), most: 0 }]),
  ) as Record<K, { first: number; most: number }>;
  const look = () => {
    for (const name of Object.keys(pids) as K[])
      seen[name].most = Math.max(seen[name].most, pssMiB(pids[name]));
  };
  const timer = setInterval(look, 100);
  return {
    seen() {
      look();
      return seen;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function pssMiB(pid: number): number {
  const text = existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/smaps_rollup`, "utf8") : "";
  return Math.round(Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024);
}
