import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";
import { git } from "./test-git-server.ts";

setDefaultTimeout(120_000);

let keeper: TestKeeper;
let dir: string;
beforeAll(async () => {
  keeper = await startTestKeeper();
  dir = mkdtempSync(join(keeper.dir, "repo-"));
  git(dir, ["init", "--quiet", "--initial-branch=main"]);
  for (const name of ["kept", "gone", "old name", "staged"])
    writeFileSync(join(dir, name), `${lines(name)}\n`);
  writeFileSync(join(dir, "binary"), Buffer.from([0, 1, 2]));
  symlinkSync("kept", join(dir, "link"));
  git(dir, ["add", "--all"]);
  git(dir, ["commit", "--quiet", "-m", "first"]);
});
afterAll(() => keeper[Symbol.asyncDispose]());

const lines = (name: string) => Array.from({ length: 20 }, (_, i) => `${name} ${i}`).join("\n");
const look = async (what: string, query = "") =>
  (await keeper.call(`/v1/git/${what}?path=${encodeURIComponent(dir)}${query}`)).body;

test("status and diff as data: every kind of change, and names of any bytes", async () => {
  const commit = git(dir, ["rev-parse", "HEAD"]);
  expect(await look("status")).toEqual({ branch: "main", commit, clean: true, files: [] });
  expect(await look("diff")).toEqual({ files: [], truncated: false });

  const odd = Buffer.concat([Buffer.from(join(dir, "odd\n")), Buffer.from([0xff])]);
  writeFileSync(odd, "odd\n");
  renameSync(join(dir, "old name"), join(dir, "new\tname"));
  git(dir, ["add", "--all"]);
  rmSync(join(dir, "gone"));
  rmSync(join(dir, "link"));
  writeFileSync(join(dir, "link"), "diff --git a/fake b/fake\n");
  writeFileSync(join(dir, "kept"), `${lines("kept")}\ndiff --git a/x b/x\n`);
  writeFileSync(join(dir, "binary"), Buffer.from([0, 1, 3]));
  mkdirSync(join(dir, "new"));
  writeFileSync(join(dir, "new/file"), "");

  const plain = { conflicted: false, index: "unmodified" };
  const status = await look("status");
  expect(status.clean).toBe(false);
  expect(status.files).toEqual([
    { path: "binary", ...plain, worktree: "modified" },
    { path: "gone", ...plain, worktree: "deleted" },
    { path: "kept", ...plain, worktree: "modified" },
    { path: "link", ...plain, worktree: "typechanged" },
    { path: "new\tname", from: "old name", ...plain, index: "renamed", worktree: "unmodified" },
    { path: "odd\n\ufffd", pathBase64: btoa("odd\n\xff"), ...plain, index: "added", worktree: "unmodified" },
    { path: "new/file", ...plain, worktree: "untracked" },
  ]);

  const diff = await look("diff");
  const counts = (change: string, additions: number | null, deletions: number | null) => ({
    change,
    additions,
    deletions,
    binary: additions === null,
  });
  // biome-ignore lint/suspicious/noExplicitAny: what the keeper answered
  expect(diff.files.map(({ patch, ...facts }: any) => facts)).toEqual([
    { path: "binary", ...counts("modified", null, null) },
    { path: "gone", ...counts("deleted", 0, 20) },
    { path: "kept", ...counts("modified", 1, 0) },
    { path: "link", ...counts("typechanged", 1, 1) },
  ]);
  expect(diff.files[0].patch).toBeUndefined();
  expect(diff.files[2].patch).toEndWith("+diff --git a/x b/x\n");
  expect(diff.files[3].patch).toEndWith("+diff --git a/fake b/fake\n");

  const staged = await look("diff", "&staged=true");
  expect(staged.files).toMatchObject([
    { path: "new\tname", from: "old name", ...counts("renamed", 0, 0) },
    { pathBase64: btoa("odd\n\xff"), ...counts("added", 1, 0), patch: expect.stringContaining("+odd\n") },
  ]);
  expect((await look("diff", "&base=HEAD")).files).toHaveLength(6);
  const small = await look("diff", "&maxPatchBytes=450");
  expect(small.truncated).toBe(true);
  expect(small.files.map((file: { patch?: string }) => file.patch !== undefined)).toEqual([
    false,
    true,
    false,
    false,
  ]);
});

test("a conflict is one file; a look leaves the repository as it is, and asks nothing of its settings", async () => {
  git(dir, ["add", "--all"]);
  git(dir, ["commit", "--quiet", "-m", "second"]);
  git(dir, ["checkout", "--quiet", "-b", "other"]);
  writeFileSync(join(dir, "kept"), "theirs\n");
  git(dir, ["commit", "--quiet", "-am", "theirs"]);
  git(dir, ["checkout", "--quiet", "main"]);
  writeFileSync(join(dir, "kept"), "ours\n");
  git(dir, ["commit", "--quiet", "-am", "ours"]);
  expect(() => git(dir, ["merge", "other"])).toThrow();
  const index = readFileSync(join(dir, ".git/index"));
  const ran = join(keeper.dir, "ran");
  git(dir, ["config", "core.fsmonitor", `touch ${ran}; false`]);
  git(dir, ["config", "diff.external", `touch ${ran}`]);

  const file = { path: "kept", index: "unmerged", worktree: "unmerged", conflicted: true };
  expect((await look("status")).files).toEqual([file]);
  expect((await look("diff")).files).toMatchObject([
    { path: "kept", change: "unmerged", additions: 4, patch: expect.stringContaining("++<<<<<<< HEAD") },
  ]);
  expect((await look("diff", "&base=HEAD")).files).toMatchObject([{ path: "kept", change: "modified" }]);
  expect((await look("diff", "&staged=true")).files).toMatchObject([{ path: "kept", change: "unmerged" }]);
  expect(readFileSync(join(dir, ".git/index"))).toEqual(index);
  expect(await Bun.file(ran).exists()).toBe(false);

  expect((await look("diff", "&base=--output=/tmp/x")).error.code).toBe("invalid_argument");
  expect((await look("diff", "&base=nowhere")).error).toMatchObject({ code: "git_failed" });
  expect((await keeper.call(`/v1/git/status?path=${keeper.dir}`)).body.error.code).toBe("not_found");
  expect((await keeper.call("/v1/activity")).body.heldAwakeBy).toEqual([]);
});
