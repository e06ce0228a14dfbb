import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SyncOptions } from "holdfast";
import { holdfastBin, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
const home = mkdtempSync(join(tmpdir(), "holdfast-sync-"));
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ name: "synced", network: "none" }, server.at);
});
afterAll(async () => {
  rmSync(home, { recursive: true });
  await server.dispose();
});

/** A new pair of directories, with books of its own. */
function newPair(name: string) {
  const local = join(home, name);
  const remote = `/workspace/${name}`;
  mkdirSync(local);
  const sync = (options: SyncOptions = {}) =>
    sandbox.files.sync(local, remote, { stateFile: join(home, `${name}.json`), ...options });
  const write = (path: string, content: string | Uint8Array, mode = 0o644) => {
    mkdirSync(join(local, path, ".."), { recursive: true });
    writeFileSync(join(local, path), content, { mode });
  };
  const read = (path: string) => readFileSync(join(local, path), "utf8");
  const remoteRead = (path: string) => sandbox.files.readText(`${remote}/${path}`);
  const remoteWrite = (path: string, content: string) =>
    sandbox.files.write(`${remote}/${path}`, content, { parents: true });
  return { local, remote, sync, write, read, remoteRead, remoteWrite };
}

const none = {
  uploaded: [],
  downloaded: [],
  deletedLocal: [],
  deletedRemote: [],
  conflicts: [],
  skipped: [],
};

test("up: equal by hash, modes and odd names; only what changed; .gitignore; no link leads out", async () => {
  const { local, remote, sync, write, remoteRead } = newPair("up");
  for (let i = 0; i < 700; i++) write(`many/${i % 7}/${i}`, `content ${i}\n`);
  write("run.sh", "#!/bin/sh\n", 0o755);
  write("key", "secret\n", 0o600);
  mkdirSync(join(local, "empty/deep"), { recursive: true });
  write("odd\n ünï.txt", "");
  write("large.bin", new Uint8Array(3 * 1024 * 1024).fill(7));
  write(".gitignore", "ignored\n*.tmp\n");
  write("sub/.gitignore", "!kept.tmp\n");
  for (const path of ["ignored/a", "x.tmp", "sub/y.tmp", "sub/kept.tmp", ".git/config"]) write(path, "x");
  symlinkSync("/etc", join(local, "etc"));
  symlinkSync("/etc/passwd", join(local, "passwd"));
  symlinkSync("../../run.sh", join(local, "many/0/run"));
  symlinkSync("many", join(local, "few"));
  symlinkSync("nothing", join(local, "dangling"));
  const first = await sync();
  expect(first).toMatchObject({ unchanged: 0, conflicts: [], downloaded: [] });
  expect(first.uploaded).toHaveLength(710);
  expect(first.skipped.map(({ path }) => path).sort()).toEqual(["empty/deep/", "etc", "passwd"]);
  const hash = `find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
    find . ! -type d -printf '%P %y %m %l\\n' | LC_ALL=C sort | sha256sum`;
  const skip = "rm -rf ignored x.tmp sub/y.tmp .git etc passwd empty";
  const copy = join(home, "copy");
  Bun.spawnSync(["sh", "-c", `cp -a ${local} ${copy} && cd ${copy} && ${skip}`]);
  const here = Bun.spawnSync(["sh", "-c", hash], { cwd: copy }).stdout.toString();
  expect((await sandbox.exec(hash, { cwd: remote })).stdout).toBe(here);

  expect(await sync()).toEqual({ ...none, unchanged: 710, skipped: first.skipped });
  write("many/3/3", "changed\n");
  rmSync(join(local, "few"));
  symlinkSync("sub", join(local, "few"));
  const changed = ["few", "many/3/3"];
  expect(await sync()).toEqual({ ...none, uploaded: changed, unchanged: 708, skipped: first.skipped });
  expect([await remoteRead("many/3/3"), await remoteRead("few/kept.tmp")]).toEqual(["changed\n", "x"]);
  // Books that are lost cost time, and nothing else.
  rmSync(join(home, "up.json"));
  expect(await sync()).toEqual({ ...none, unchanged: 710, skipped: first.skipped });
});

test("both ways: each side's changes go to the other, a conflict is told and touched on neither", async () => {
  const { local, sync, write, read, remoteRead, remoteWrite } = newPair("both");
  for (const path of ["a", "b", "c", "d", "e", "f", "g", "h", "i"]) write(path, "base\n");
  symlinkSync("a", join(local, "j"));
  for (const path of ["k", "l/deep/x", "m/deep/x", "n"]) write(path, "base\n");
  await sync();
  write("a", "ours\n");
  await remoteWrite("b", "theirs\n");
  write("c", "ours\n");
  await remoteWrite("c", "theirs\n");
  await remoteWrite("new/deep", "theirs\n");
  rmSync(join(local, "d"));
  await sandbox.exec("rm e f", { cwd: "/workspace/both" });
  write("f", "ours\n");
  // A link is a file like any other, and takes the place of one.
  rmSync(join(local, "g"));
  symlinkSync("a", join(local, "g"));
  await sandbox.exec("ln -sf ../h h; rm i && ln -s b i", { cwd: "/workspace/both" });
  rmSync(join(local, "j"));
  write("j", "ours\n");
  // A file becomes a directory, and a directory a file, on either side.
  rmSync(join(local, "k"));
  write("k/deep/x", "ours\n");
  rmSync(join(local, "l"), { recursive: true });
  write("l", "ours\n");
  const turned = "rm -r m n && echo theirs > m && mkdir n && echo theirs > n/x";
  expect(await sandbox.exec(turned, { cwd: "/workspace/both" })).toMatchObject({ exitCode: 0 });
  const told = await sync({ direction: "both", delete: true });
  expect(told).toEqual({
    ...none,
    uploaded: ["a", "g", "j", "k/deep/x", "l"],
    downloaded: ["i", "b", "m", "n/x", "new/deep"],
    deletedRemote: ["d", "k", "l/deep/x"],
    deletedLocal: ["e", "m/deep/x", "n"],
    unchanged: 0,
    conflicts: [
      { path: "c", reason: "it was changed on both sides" },
      { path: "f", reason: "it was deleted in the sandbox, and changed here" },
    ],
    skipped: [{ path: "h", reason: "it leads out of the directory, to ../h" }],
  });
  expect([await remoteRead("k/deep/x"), await remoteRead("l"), read("m"), read("n/x")]).toEqual([
    ...["ours\n", "ours\n", "theirs\n", "theirs\n"],
  ]);
  expect([readlinkSync(join(local, "i")), read("h")]).toEqual(["b", "base\n"]);
  const links = "readlink g i j h; cat j a";
  expect((await sandbox.exec(links, { cwd: "/workspace/both" })).stdout).toBe("a\nb\n../h\nours\nours\n");
  expect([read("a"), read("b"), read("c"), read("f"), read("new/deep")]).toEqual([
    ...["ours\n", "theirs\n", "ours\n", "ours\n", "theirs\n"],
  ]);
  expect([await remoteRead("a"), await remoteRead("c")]).toEqual(["ours\n", "theirs\n"]);
  expect([existsSync(join(local, "e")), await sandbox.files.exists("/workspace/both/d")]).toEqual([
    false,
    false,
  ]);
  // A side that has lost everything was not emptied on purpose.
  await sandbox.exec("rm -rf /workspace/both");
  await expect(sync({ direction: "both", delete: true })).rejects.toMatchObject({ code: "state_lost" });
  expect(read("b")).toBe("theirs\n");
});

test("down: nothing is written outside, whatever the sandbox calls a file; its own .gitignore counts", async () => {
  const { local, remote, sync, read } = newPair("down");
  const outside = join(home, "outside");
  mkdirSync(outside);
  symlinkSync(outside, join(local, "out"));
  const make = [
    "mkdir -p out dist && echo evil > out/evil && echo evil > 'back\\slash' && echo ok > ok && chmod +x ok",
    "ln -s /etc/passwd link && echo built > dist/x && echo dist > .gitignore && head -c 2000000 /dev/zero > large",
    // Each of the two stays inside by its name; behind the first, the second would not.
    "mkdir -p p/q && ln -s ../.. p/q/up && ln -s p/q/up/../../evil deceit && echo key > key && chmod 666 key",
    "mkdir file && echo evil > file/evil",
  ];
  writeFileSync(join(local, "file"), "");
  await sandbox.exec(make.join("\n"), { cwd: (await sandbox.files.mkdir(remote, { parents: true })).path });
  const told = await sync({ direction: "down" });
  expect(told.downloaded.sort()).toEqual([".gitignore", "key", "large", "ok", "p/q/up"]);
  expect(told.skipped.map(({ path }) => path).sort()).toEqual([
    ...["back\\slash", "deceit", "file", "file/evil", "link", "out", "out/evil"],
  ]);
  expect(statSync(join(local, "key")).mode & 0o777).toBe(0o666 & ~process.umask());
  expect([read("ok"), statSync(join(local, "ok")).mode & 0o777, statSync(join(local, "large")).size]).toEqual(
    [...["ok\n", 0o755, 2_000_000]],
  );
  expect(existsSync(join(outside, "evil"))).toBe(false);
  expect((await sync({ direction: "down" })).unchanged).toBe(5);
});

test("a server that dies in the middle: only what was done is in the books, and the next sync does the rest", async () => {
  const { sync, write, remoteRead } = newPair("cut");
  for (let i = 0; i < 1_200; i++) write(`${i}`, `${i}\n`);
  let killed: Promise<unknown> | undefined;
  const onProgress = ({ done }: { done: number }) => {
    if (done === 500) killed = server.signal("SIGKILL");
  };
  await expect(sync({ onProgress })).rejects.toThrow();
  await killed;
  const booked = Object.keys(JSON.parse(readFileSync(join(home, "cut.json"), "utf8")).files);
  expect(booked).toHaveLength(500);
  await server.boot();
  const { uploaded, unchanged, conflicts } = await sync();
  expect([uploaded.length + unchanged, conflicts]).toEqual([1_200, []]);
  expect(await remoteRead("1199")).toBe("1199\n");

  // Also of a batch that is left in its middle, what was done is in the books.
  for (const path of ["a", "b", "c"]) write(path, "new\n");
  const stop = new AbortController();
  const stopping = { onProgress: () => stop.abort(new Error("enough")), signal: stop.signal };
  await expect(sync(stopping)).rejects.toThrow("enough");
  const booksNow = Object.keys(JSON.parse(readFileSync(join(home, "cut.json"), "utf8")).files);
  expect(booksNow.filter((path) => /^[a-c]$/.test(path))).toEqual(["a", "b"]);
});

test("holdfast sync --watch carries changes both ways, until Ctrl-C", async () => {
  const { local, remote, write, remoteWrite } = newPair("watched");
  write("first", "1\n");
  const args = [local, `synced:${remote}`, "--direction", "both", "--watch", "-o", "json"];
  const env = {
    ...process.env,
    HOLDFAST_URL: server.url,
    HOLDFAST_TOKEN: server.token,
    XDG_STATE_HOME: home,
  };
  const child = Bun.spawn([holdfastBin, "sync", ...args], { env, stdout: "pipe", stderr: "inherit" });
  const results = linesOf(child.stdout);
  const until = async (wanted: (result: { uploaded: string[]; downloaded: string[] }) => boolean) => {
    for (;;) {
      const { value, done } = await results.next();
      if (done) throw new Error("it ended");
      if (wanted(JSON.parse(value))) return;
    }
  };
  await until(({ uploaded }) => uploaded.includes("first"));
  write("second/new", "2\n");
  await until(({ uploaded }) => uploaded.includes("second/new"));
  await remoteWrite("third", "3\n");
  await until(({ downloaded }) => downloaded.includes("third"));
  expect(readFileSync(join(local, "third"), "utf8")).toBe("3\n");
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
});

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
