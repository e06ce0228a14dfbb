import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";
import { git, TestGitServer } from "./test-git-server.ts";

setDefaultTimeout(120_000);

let keeper: TestKeeper;
let server: TestGitServer;
beforeAll(async () => {
  keeper = await startTestKeeper();
  server = new TestGitServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await keeper[Symbol.asyncDispose]();
});

const clone = (request: object) => keeper.call("/v1/git/clone", request);
const credentials = () => ({ username: "agent", password: server.password });

/** Everything a later process could read of a secret: files, and the processes' arguments and environments. */
function tracesOf(secret: string): string[] {
  const found = Bun.spawnSync(["grep", "-rlaF", "--", secret, keeper.dir]).stdout.toString().trim();
  const seen = found === "" ? [] : found.split("\n");
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid))
    for (const file of ["cmdline", "environ"])
      try {
        if (readFileSync(`/proc/${pid}/${file}`, "utf8").includes(secret)) seen.push(`/proc/${pid}/${file}`);
      } catch {
        // ended, or not ours
      }
  return seen;
}

test("credentials serve one clone, and are nowhere: while it runs, and afterwards", async () => {
  const url = server.commit("private", { "src/a.txt": "a\n", "docs/b.txt": "b\n", top: "t\n" });
  const path = join(keeper.dir, "new/app");
  // A helper that would keep what worked.
  const kept = join(keeper.dir, "kept");
  writeFileSync(
    join(keeper.dir, ".gitconfig"),
    `[credential]\n\thelper = store --file ${kept}\n[credential "${server.origin}"]\n\thelper = store --file ${kept}\n`,
  );
  const refused = (await clone({ url, path })).body.error;
  expect(refused).toMatchObject({ code: "git_failed", details: { reason: "authentication" } });

  const holding = Promise.withResolvers<void>();
  server.held = holding.promise;
  const before = server.asked;
  const cloning = clone({ url, path, depth: 1, credentials: credentials(), commandId: "c1" });
  while (server.asked === before) await Bun.sleep(5);
  const during = [...tracesOf(server.password), ...tracesOf(btoa(`agent:${server.password}`))];
  const half = readdirSync(join(keeper.dir, "new"));
  holding.resolve();
  const { body } = await cloning;
  const commit = git(join(server.dir, "private-work"), ["rev-parse", "HEAD"]);
  expect(body).toEqual({ status: "cloned", commandId: "c1", path, commit, branch: "main" });
  expect([during, tracesOf(server.password), existsSync(kept)]).toEqual([[], [], false]);
  expect(half.map((name) => name.endsWith(".holdfast-clone-c1"))).toEqual([true]);
  expect(readdirSync(join(keeper.dir, "new"))).toEqual(["app"]);
  expect(git(path, ["remote", "get-url", "origin"])).toBe(url);
  const log = await (await keeper.request("/v1/commands/c1/logs")).text();
  expect(Buffer.from(/"data":"([^"]*)"/.exec(log)?.[1] ?? "", "base64").toString()).toContain("Cloning into");

  // The same id is the same clone; another one finds the place taken.
  expect((await clone({ url, path, depth: 1, credentials: credentials(), commandId: "c1" })).body).toEqual(
    body,
  );
  expect((await clone({ url, path, credentials: credentials() })).body.error.code).toBe("already_exists");
});

test("sparse: only what was asked for, with credentials for each of git's steps; into an empty directory", async () => {
  const url = server.commit("sparse", { "src/a.txt": "a\n", "docs/b.txt": "b\n", top: "t\n" });
  const path = join(keeper.dir, "it's sparse");
  mkdirSync(path);
  const { body } = await clone({ url, path, sparse: ["src"], branch: "main", credentials: credentials() });
  expect([body.status, body.branch]).toEqual(["cloned", "main"]);
  expect(readdirSync(path).sort()).toEqual([".git", "src", "top"]);
  expect(git(path, ["status", "--porcelain"])).toBe("");
});

test("a redirect to another host gets no credentials; an empty repository is a clone, too", async () => {
  const url = server.commit("moved", { a: "a" });
  await using other = new TestGitServer();
  server.redirectTo = other.origin;
  const { body } = await clone({ url, path: join(keeper.dir, "moved"), credentials: credentials() });
  server.redirectTo = undefined;
  expect([body.error.code, other.asked > 0, [...other.authorizations]]).toEqual(["git_failed", true, []]);
  git(keeper.dir, ["init", "--quiet", "--bare", "--initial-branch=trunk", "empty.git"]);
  const empty = await clone({ url: join(keeper.dir, "empty.git"), path: join(keeper.dir, "empty") });
  expect(empty.body).toMatchObject({ status: "cloned", commit: null, branch: "trunk" });
});

test.each<[string, object]>([
  ["an option as the URL", { url: "--upload-pack=touch /tmp/x" }],
  ["a program as the URL", { url: "ext::sh -c 'touch /tmp/x'" }],
  ["a program behind a scheme", { url: "file::ext::sh" }],
  ["an option as the host", { url: "ssh://-oProxyCommand=x/y" }],
  ["an option as the user's host", { url: "git@-oProxyCommand=x:y" }],
  ["a password in the URL", { url: "https://user:secret@example.com/x.git" }],
  ["a second line", { url: "https://example.com/x\nhost=evil" }],
  ["an option as the branch", { url: "/x", branch: "--upload-pack=x" }],
  ["an option among the directories", { url: "/x", sparse: ["--stdin"] }],
  ["a second line of credentials", { url: "https://example.com/x", credentials: { password: "a\nhost=b" } }],
  ["credentials for ssh", { url: "ssh://example.com/x", credentials: { password: "a" } }],
])("refused: %s", async (_, request) => {
  const { status, body } = await clone({ path: join(keeper.dir, "never"), ...request });
  expect([status, body.error.code, body.error.started]).toEqual([400, "invalid_argument", "no"]);
  expect(existsSync(join(keeper.dir, "never"))).toBe(false);
});

test("cut by a timeout, a cancel, or the keeper's death: nothing half-made is left", async () => {
  const url = server.commit("cut", { a: "a" });
  const holding = Promise.withResolvers<void>();
  server.held = holding.promise;
  const place = join(keeper.dir, "cut");
  const request = { url, credentials: credentials() };
  const late = await clone({ ...request, path: join(place, "late"), timeoutMs: 300 });
  expect(late.body.error).toMatchObject({ code: "git_failed", details: { reason: "timeout" } });
  const running = await clone({ ...request, path: join(place, "cancelled"), commandId: "c2", yieldMs: 1 });
  expect(running.body).toEqual({ status: "running", commandId: "c2" });
  await keeper.call("/v1/commands/c2/cancel", {});
  const cancelled = await clone({ ...request, path: join(place, "cancelled"), commandId: "c2" });
  expect(cancelled.body.error).toMatchObject({ code: "git_failed", details: { reason: "cancelled" } });
  expect(readdirSync(place)).toEqual([]);

  await clone({ ...request, path: join(place, "crashed"), commandId: "c3", yieldMs: 1 });
  while (readdirSync(place).length === 0) await Bun.sleep(5);
  for (const pid of keeper.processes()) process.kill(pid, "SIGSTOP"); // git would tidy up by itself
  await keeper.crash();
  expect(readdirSync(place)).toHaveLength(1);
  keeper = await startTestKeeper({ dir: keeper.dir });
  expect(readdirSync(place)).toEqual([]);
  const lost = await clone({ ...request, path: join(place, "crashed"), commandId: "c3" });
  expect(lost.body.error).toMatchObject({ code: "git_failed", details: { reason: "lost" } });
  holding.resolve();
  server.held = Promise.resolve();
  expect((await clone({ ...request, path: join(place, "crashed") })).body.status).toBe("cloned");
});

test("a sandbox without git says so", async () => {
  await using bare = await startTestKeeper({ boot: { env: { PATH: "/nonexistent" } } });
  const { status, body } = await bare.call("/v1/git/status?path=/tmp");
  expect([status, body.error.code]).toEqual([501, "unsupported"]);
  expect(body.error.hint).toContain("install");
});
